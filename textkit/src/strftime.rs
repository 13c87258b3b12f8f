//! Python's `datetime.now().strftime(format)`: the C library's strftime on local time.

use std::ffi::CString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer results are refused.
const MAX_BYTES: usize = 4096;

pub fn strftime_now(format: &str) -> Result<String, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let format = expand_python_directives(format, now);
    let seconds = libc::time_t::try_from(now.as_secs()).map_err(|error| error.to_string())?;
    // SAFETY: an all-zero tm is valid; localtime_r writes it and keeps no pointer.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut tm).is_null() {
            return Err("the local time could not be determined".to_string());
        }
        tm
    };
    format_time(&format, &tm)
}

/// What Python replaces before it calls the C library: microseconds, and the zone, which a time
/// without one prints as nothing.
fn expand_python_directives(format: &str, now: Duration) -> String {
    let mut expanded = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            expanded.push(c);
            continue;
        }
        match chars.next() {
            Some('f') => expanded.push_str(&format!("{:06}", now.subsec_micros())),
            Some('z' | 'Z') => {}
            Some(directive) => expanded.extend(['%', directive]),
            None => expanded.push('%'),
        }
    }
    expanded
}

fn format_time(format: &str, tm: &libc::tm) -> Result<String, String> {
    // strftime returns 0 both for an empty result and for one that doesn't fit: a last character
    // of our own tells them apart.
    let format = CString::new(format!("{format}."))
        .map_err(|_| "strftime_now got a format with a zero byte".to_string())?;
    let mut buffer = vec![0u8; MAX_BYTES];
    // SAFETY: the buffer's size is passed, the format ends with a zero byte, tm is initialised.
    let size =
        unsafe { libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), tm) };
    if size == 0 {
        return Err(format!("strftime_now got a format whose result exceeds {MAX_BYTES} bytes"));
    }
    buffer.truncate(size - 1);
    String::from_utf8(buffer).map_err(|_| "strftime_now got a result that isn't UTF-8".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_noon(format: &str) -> String {
        // SAFETY: an all-zero tm is valid.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        (tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_wday) = (124, 6, 26, 12, 5);
        format_time(&expand_python_directives(format, Duration::from_micros(7)), &tm).unwrap()
    }

    #[test]
    fn formats() {
        assert_eq!(at_noon("%d %b %Y"), "26 Jul 2024");
        assert_eq!(at_noon("%A, %H:%M:%S.%f|%z%Z|%%z"), "Friday, 12:00:00.000007||%z");
        assert_eq!(at_noon(""), "");
        assert_eq!(at_noon("é"), "é");
    }

    #[test]
    fn refuses_endless_results_and_zero_bytes() {
        assert!(strftime_now(&"%A".repeat(3000)).is_err());
        assert!(strftime_now("a\0b").is_err());
        assert!(strftime_now("%Y").unwrap().parse::<i32>().unwrap() > 2024);
    }
}
