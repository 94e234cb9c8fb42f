//! The offer of permessage-deflate and what a server may answer to it (RFC 7692 §7.1).
//!
//! How it works: the offer asks for no context between messages, on either side. So all connections
//! of a thread share what compresses and decompresses, and none keeps a window of 32 KiB.
//!
//! Must not know: heads, frames.

/// The line of the offer.
pub(super) const OFFER: &[u8] = b"Sec-WebSocket-Extensions: permessage-deflate; \
    client_no_context_takeover; server_no_context_takeover\r\n";
pub(super) const NOT_ASKED: &str = "has an extension that was not asked for";

const NAME: &[u8] = b"permessage-deflate";

/// Whether the extensions of an answer to [`OFFER`] agree to it; the reason if they are none that a
/// client may accept.
pub(super) fn agreed<'a>(
    mut answered: impl Iterator<Item = &'a [u8]>,
) -> Result<bool, &'static str> {
    let Some(extension) = answered.next() else { return Ok(false) };
    let mut parameters = extension.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    if parameters.next() != Some(NAME) {
        return Err(NOT_ASKED);
    }
    let mut given = [false; 3];
    for parameter in parameters {
        let (nth, again) = judge(parameter)?;
        if std::mem::replace(&mut given[nth], true) {
            return Err(again);
        }
    }
    if answered.next().is_some() {
        return Err("has a second extension");
    }
    // A server that does not accept it has to decline the offer (§7.1.1.1).
    if given[0] { Ok(true) } else { Err("leaves out server_no_context_takeover") }
}

/// The number of a parameter that may be answered, and what is said if it is repeated.
fn judge(parameter: &[u8]) -> Result<(usize, &'static str), &'static str> {
    let mut halves = parameter.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
    match (halves.next().unwrap_or_default(), halves.next()) {
        (b"server_no_context_takeover", None) => Ok((0, "repeats server_no_context_takeover")),
        (b"server_no_context_takeover", _) => Err("gives server_no_context_takeover a value"),
        (b"client_no_context_takeover", None) => Ok((1, "repeats client_no_context_takeover")),
        (b"client_no_context_takeover", _) => Err("gives client_no_context_takeover a value"),
        // Any window can be inflated, so a server may choose one without having been asked.
        (b"server_max_window_bits", Some(bits)) if is_window(bits) => {
            Ok((2, "repeats server_max_window_bits"))
        }
        (b"server_max_window_bits", _) => Err("has a server_max_window_bits other than 8 to 15"),
        (b"client_max_window_bits", _) => Err("has client_max_window_bits, which was not offered"),
        _ => Err("has an unknown parameter of permessage-deflate"),
    }
}

fn is_window(value: &[u8]) -> bool {
    let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    let bits = quoted.unwrap_or(value);
    matches!(bits, b"8" | b"9" | b"10" | b"11" | b"12" | b"13" | b"14" | b"15")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_agrees_declines_or_is_refused_by_the_name_of_its_parameter() {
        const SERVER: &str = "permessage-deflate; server_no_context_takeover";
        let server = |more: &str| format!("{SERVER}{more}");
        let not_asked = Err(NOT_ASKED);
        for (answer, expected) in [
            (String::new(), Ok(false)),
            (server(""), Ok(true)),
            (server(" ;client_no_context_takeover"), Ok(true)),
            (server("; server_max_window_bits=8"), Ok(true)),
            (server("; server_max_window_bits = \"15\""), Ok(true)),
            (
                "permessage-deflate;server_max_window_bits=9;server_no_context_takeover".into(),
                Ok(true),
            ),
            ("permessage-deflate".into(), Err("leaves out server_no_context_takeover")),
            (
                "permessage-deflate; client_no_context_takeover".into(),
                Err("leaves out server_no_context_takeover"),
            ),
            (server("; server_no_context_takeover"), Err("repeats server_no_context_takeover")),
            (server("=1"), Err("gives server_no_context_takeover a value")),
            (server("="), Err("gives server_no_context_takeover a value")),
            (
                server("; client_no_context_takeover; client_no_context_takeover"),
                Err("repeats client_no_context_takeover"),
            ),
            (
                server("; client_no_context_takeover=true"),
                Err("gives client_no_context_takeover a value"),
            ),
            (
                server("; server_max_window_bits=10; server_max_window_bits=10"),
                Err("repeats server_max_window_bits"),
            ),
            (
                server("; client_max_window_bits=15"),
                Err("has client_max_window_bits, which was not offered"),
            ),
            (
                server("; client_max_window_bits"),
                Err("has client_max_window_bits, which was not offered"),
            ),
            (server("; mux"), Err("has an unknown parameter of permessage-deflate")),
            (server(";"), Err("has an unknown parameter of permessage-deflate")),
            ("permessage-bzip2".into(), not_asked),
            ("Permessage-Deflate; server_no_context_takeover".into(), not_asked),
            ("x-webkit-deflate-frame".into(), not_asked),
            (format!("{SERVER}, {SERVER}"), Err("has a second extension")),
            (format!("{SERVER}, mux"), Err("has a second extension")),
            (format!("mux, {SERVER}"), not_asked),
        ] {
            let answered = answer.split(',').map(|one| one.trim().as_bytes());
            let answered = answered.filter(|one| !one.is_empty());
            assert_eq!(agreed(answered), expected, "{answer}");
        }
        for bits in ["", "7", "16", "08", "+9", "1 0", "\"10", "x"] {
            let parameter = format!("server_max_window_bits={bits}");
            let why = Err("has a server_max_window_bits other than 8 to 15");
            assert_eq!(judge(parameter.as_bytes()), why, "{bits}");
        }
        let why = Err("has a server_max_window_bits other than 8 to 15");
        assert_eq!(judge(b"server_max_window_bits"), why);
    }
}
