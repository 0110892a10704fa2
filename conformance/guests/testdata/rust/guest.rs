//! A guest in Rust on std: hash maps with random keys, sorting, strings, floats,
//! NaNs, clocks, threads that cannot be, and files. It answers with what it saw,
//! as lines of one JSON string.
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[link(wasm_import_module = "writ_v1")]
extern "C" {
    fn clock_now() -> i64;
    fn random_fill(at: *mut u8, size: u32) -> i32;
    fn log(level: i32, at: *const u8, size: u32) -> i32;
}

#[no_mangle]
pub extern "C" fn writ_alloc(size: u32) -> *mut u8 {
    Box::leak(vec![0u8; size.max(1) as usize].into_boxed_slice()).as_mut_ptr()
}

/// # Safety
/// The memory must be of `writ_alloc` and of that size.
#[no_mangle]
pub unsafe extern "C" fn writ_free(at: *mut u8, size: u32) {
    drop(Vec::from_raw_parts(at, size.max(1) as usize, size.max(1) as usize));
}

/// # Safety
/// The request must be of `writ_alloc` and of that size.
#[no_mangle]
pub unsafe extern "C" fn writ_execute(at: *const u8, size: u32) -> u64 {
    let request = std::slice::from_raw_parts(at, size as usize);
    let text = report(request);
    log(1, text.as_ptr(), 60);
    println!("a line of {} bytes", text.len());
    eprint!("and one without an end");
    let mut answer = String::from(r#"{"claims":[],"evidence":[],"artifacts":[],"output":""#);
    for c in text.chars() {
        match c {
            '\n' => answer.push_str("\\n"),
            '"' | '\\' => {
                answer.push('\\');
                answer.push(c);
            }
            _ => answer.push(c),
        }
    }
    answer.push_str("\"}");
    let answer = answer.into_bytes().leak();
    (answer.as_ptr() as u64) << 32 | answer.len() as u64
}

fn report(request: &[u8]) -> String {
    let mut out = String::new();
    maps(&mut out, request);
    floats(&mut out, request.len() as f64 / 7.0);
    nans(&mut out, request.len() as f64);
    clocks(&mut out);
    chance(&mut out);
    files(&mut out, "/");
    heap(&mut out);
    let spawned = std::thread::Builder::new().spawn(|| ());
    writeln!(out, "thread {}", if spawned.is_ok() { "spawned" } else { "refused" }).unwrap();
    out
}

/// maps goes through maps in their order, which random keys decide.
fn maps(out: &mut String, request: &[u8]) {
    let words: Vec<String> = request.chunks(5).map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for w in &words {
        *counts.entry(w).or_default() += 1;
    }
    let order: Vec<_> = counts.keys().collect();
    writeln!(out, "map {:?}", order).unwrap();
    let set: HashSet<u32> = (0..40).map(|i| i * i).collect();
    writeln!(out, "set {:?}", set).unwrap();
    let tree: BTreeMap<_, _> = counts.iter().map(|(k, v)| (v, k.len())).collect();
    writeln!(out, "tree {:?}", tree).unwrap();
    let mut hasher = RandomState::new().build_hasher();
    hasher.write(request);
    writeln!(out, "hash {:016x}", hasher.finish()).unwrap();
}

fn floats(out: &mut String, x: f64) {
    let functions: [fn(f64) -> f64; 10] = [
        f64::sqrt, f64::sin, f64::cos, f64::exp, f64::ln, f64::cbrt, f64::floor, f64::round, f64::atan, f64::tanh,
    ];
    for (i, f) in functions.iter().enumerate() {
        let y = f(x * (i + 1) as f64);
        writeln!(out, "{} {} {:e} {:.3} {} {:016x}", i, y, y, y, y as f32, y.to_bits()).unwrap();
        writeln!(out, "{} {}", (y * 1e30) as i32, (y * 1e6) as u64).unwrap();
    }
    let mut values: Vec<f64> = (0..100).map(|i| (x * (i * i) as f64) % 13.0 - 6.0).collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    writeln!(out, "sorted {:?} {:?}", &values[..5], "0.1e-310".parse::<f64>()).unwrap();
}

/// nans makes NaNs of what the compiler does not know.
fn nans(out: &mut String, n: f64) {
    let zero = n - n;
    let payload = f64::from_bits(0xfff4_0000_0000_0123 + (zero as u64));
    let made = [
        zero / zero, -(zero / zero), n / zero - n / zero, (zero - 1.0).sqrt(), payload + 1.0, payload * payload,
        (payload as f32) as f64, -payload, payload.abs(), payload.min(1.0), payload.floor(),
    ];
    for (i, x) in made.iter().enumerate() {
        writeln!(out, "nan {} {:016x}", i, x.to_bits()).unwrap();
    }
    let small = zero as f32;
    writeln!(out, "nan float {:08x} {:08x}", (small / small).to_bits(), (payload as f32).to_bits()).unwrap();
}

fn clocks(out: &mut String) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(2500));
    writeln!(out, "now {:?}, slept {:?}, host {}", since, start.elapsed(), unsafe { clock_now() }).unwrap();
}

fn chance(out: &mut String) {
    let mut bytes = [0u8; 24];
    let code = unsafe { random_fill(bytes.as_mut_ptr(), bytes.len() as u32) };
    writeln!(out, "random {} {:02x?}", code, bytes).unwrap();
}

fn files(out: &mut String, path: &str) {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(err) => {
            writeln!(out, "read_dir {}: {}", path, err).unwrap();
            return;
        }
    };
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.path().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            files(out, &name);
        } else {
            writeln!(out, "file {} {:?}", name, std::fs::read_to_string(&name)).unwrap();
        }
    }
    writeln!(out, "write {:?}", std::fs::write("/new", "x").map_err(|e| e.kind())).unwrap();
}

/// heap makes the allocator work and tells where things came to lie.
fn heap(out: &mut String) {
    let mut kept: Vec<Vec<u64>> = Vec::new();
    let mut state = 1u32;
    let mut sum = 0u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let block = vec![u64::from(state); 1 + (state >> 23) as usize];
        sum = sum.wrapping_mul(31).wrapping_add(block.as_ptr() as u64);
        if kept.len() < 300 {
            kept.push(block);
        } else {
            let at = (state >> 8) as usize % kept.len();
            kept[at] = block;
        }
    }
    writeln!(out, "heap {:016x}", sum).unwrap();
}
