"""Places where files arrive: a folder, an FTP server, a bucket. Adapters watch them."""
