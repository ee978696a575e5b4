// How Rust ends: `refused` by handle_alloc_error, by a panic after a handled refusal, or killed.
use std::env;
use std::thread;

fn try_cache() -> bool {
    let mut cache: Vec<u8> = Vec::new();
    cache.try_reserve_exact(1 << 46).is_ok()
}

#[inline(never)]
fn port_of(text: &str) -> Result<u16, std::num::ParseIntError> {
    text.parse()
}

fn work() -> usize {
    (0..4000).map(|i| format!("row {i} of the table").len()).sum()
}

fn main() {
    let how = env::args().nth(1).unwrap();
    let held = vec![1u8; 24 << 20];
    if how == "refused" {
        let block: Vec<u8> = Vec::with_capacity(1 << 46);
        println!("{}", block.capacity());
    }
    if how == "grow" {
        let mut rows = Vec::new();
        loop {
            rows.push(vec![1u8; 100_000]);
            if rows.len() == usize::MAX { break; }
        }
    }
    if how == "expect" {
        let mut table: Vec<u8> = Vec::new();
        table.try_reserve_exact(1 << 46).expect("no memory for the table");
        println!("{}", table.capacity());
    }
    if how == "spawn" {
        let thread = thread::Builder::new().stack_size(1 << 46).spawn(work);
        println!("{}", thread.unwrap().join().unwrap());
    }
    let cached = try_cache();
    if how == "parse" {
        let port: u16 = port_of(&how).unwrap();
        println!("{port}");
    }
    let rows = work();
    if how == "index" {
        println!("{}", held[held.len() + rows + usize::from(cached)]);
    }
    if how == "unwrap" {
        let none: Option<usize> = if rows == 1 { Some(1) } else { None };
        println!("{}", none.unwrap());
    }
}
