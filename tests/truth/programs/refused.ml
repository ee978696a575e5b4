let () = ignore (Bigarray.Array1.create Bigarray.char Bigarray.c_layout (1 lsl 46))
