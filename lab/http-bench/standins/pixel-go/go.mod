module pixel

go 1.21
