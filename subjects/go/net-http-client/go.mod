module subject

go 1.24
