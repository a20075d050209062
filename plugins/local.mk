include %D%/debug/local.mk
include %D%/compose/local.mk
include %D%/onednn/local.mk
