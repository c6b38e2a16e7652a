"""Places that files arrive at: a folder, an FTP server, a bucket. Adapters watch them."""
