module greenroom.lab/system

go 1.22
