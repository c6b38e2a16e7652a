"""What people and their programs need: accounts, files, exports, bulk operations, lists."""
