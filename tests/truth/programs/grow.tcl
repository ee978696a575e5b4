set rows {}
while 1 { lappend rows [string repeat x 100000][llength $rows] }
