EXTRA_DIST += %D%/onednn.txt %D%/suppressions/leak %D%/suppressions/thread
