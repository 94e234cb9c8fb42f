//! Blocks of fields: the examples of RFC 7541, both ways, and what must be refused.

use proptest::prelude::*;

use super::*;

type List = Vec<(Vec<u8>, Vec<u8>)>;

const LIST_BYTES: usize = 64 * 1024;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn list(fields: &[(&str, &str)]) -> List {
    fields.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut list = List::new();
    decoder.decode(block, LIST_BYTES, &mut |field| {
        list.push((field.name.into(), field.value.into()));
    })?;
    Ok(list)
}

fn encode(encoder: &mut Encoder, list: &List, indexing: Indexing) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin_block(&mut block);
    for (name, value) in list {
        encoder.field(&mut block, name, value, indexing);
    }
    block
}

fn error_of(decoder: &mut Decoder, block: &[u8], sentence: &str) -> String {
    decode(decoder, block).expect_err(sentence).to_string()
}

#[test]
fn single_fields_are_as_in_the_rfc() {
    // RFC 7541 Appendix C.2.
    let (mut decoder, generation) = (Decoder::default(), Decoder::default().generation());
    for (block, fields) in [
        ("040c 2f73 616d 706c 652f 7061 7468", [(":path", "/sample/path")]),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", [("password", "secret")]),
        ("82", [(":method", "GET")]),
    ] {
        assert_eq!(decode(&mut decoder, &hex(block)), Ok(list(&fields)));
        assert_eq!(decoder.generation(), generation, "{fields:?} leaves the table alone");
    }
    let inserted = hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
    let custom = list(&[("custom-key", "custom-header")]);
    assert_eq!(decode(&mut decoder, &inserted), Ok(custom.clone()));
    assert_ne!(decoder.generation(), generation);
    assert_eq!(decode(&mut decoder, &[0xbe]), Ok(custom), "it is the first of the dynamic table");
}

/// A block in plain text, the same with the Huffman code, and its fields.
type Example = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

#[rustfmt::skip]
const REQUESTS: [Example; 3] = [
    (
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    ),
    (
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8286 84be 5886 a8eb 1064 9cbf",
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com"),
          ("cache-control", "no-cache")],
    ),
    (
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        &[(":method", "GET"), (":scheme", "https"), (":path", "/index.html"),
          (":authority", "www.example.com"), ("custom-key", "custom-value")],
    ),
];

const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

#[rustfmt::skip]
const RESPONSES: [Example; 3] = [
    (
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
         3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        &[(":status", "302"), ("cache-control", "private"), ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
          ("location", "https://www.example.com")],
    ),
    (
        "4803 3330 37c1 c0bf",
        "4883 640e ffc1 c0bf",
        &[(":status", "307"), ("cache-control", "private"), ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
          ("location", "https://www.example.com")],
    ),
    (
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
         553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
         4ee5 b106 3d50 07",
        &[(":status", "200"), ("cache-control", "private"), ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
          ("location", "https://www.example.com"), ("content-encoding", "gzip"), ("set-cookie", COOKIE)],
    ),
];

/// Decoders and an encoder whose tables have so many bytes.
fn with_tables(table_bytes: u32) -> (Decoder, Decoder, Encoder) {
    let decoder = || {
        let mut decoder = Decoder::default();
        decoder.acknowledged(table_bytes);
        let mut resized = Vec::new();
        integer::write(&mut resized, 0x20, 5, table_bytes as usize);
        assert_eq!(decode(&mut decoder, &resized), Ok(Vec::new()));
        decoder
    };
    (decoder(), decoder(), Encoder::new(table_bytes))
}

#[test]
fn requests_and_responses_in_a_row_are_as_in_the_rfc() {
    // RFC 7541 Appendices C.3 to C.6; the table of the responses has 256 bytes, so that entries are evicted.
    for (table_bytes, examples) in [(4096, REQUESTS), (256, RESPONSES)] {
        let (mut plain, mut coded, mut encoder) = with_tables(table_bytes);
        for (in_plain, in_code, fields) in examples {
            let expected = list(fields);
            assert_eq!(decode(&mut plain, &hex(in_plain)), Ok(expected.clone()));
            assert_eq!(decode(&mut coded, &hex(in_code)), Ok(expected.clone()));
            let block = encode(&mut encoder, &expected, Indexing::Insert);
            // "307" is as long in either form: the RFC codes it, this encoder does not.
            let tie = hex("4803 3330 37c1 c0bf");
            assert!(block == hex(in_code) || block == tie, "{fields:?}");
        }
    }
}

#[test]
fn indices_of_nothing_are_refused_in_every_kind_of_field() {
    for block in ["80", "be", "7e 01 61", "0f 2f 01 61", "1f 2f 01 61", "ff ff ff ff 7f"] {
        let error = error_of(&mut Decoder::default(), &hex(block), block);
        assert_eq!(error, "header compression: an index is in no table", "{block}");
    }
}

#[test]
fn a_block_that_is_cut_is_refused_wherever_a_field_is_not_whole() {
    let block = hex(REQUESTS[2].1);
    for cut in 0..block.len() {
        let (mut decoder, _, _) = with_tables(4096);
        decode(&mut decoder, &hex(REQUESTS[0].1)).expect("legal");
        decode(&mut decoder, &hex(REQUESTS[1].1)).expect("legal");
        // The first four bytes are a field each.
        assert_eq!(decode(&mut decoder, &block[..cut]).is_ok(), cut <= 4, "cut at {cut}");
    }
}

#[test]
fn the_table_is_resized_only_where_and_as_far_as_it_may_be() {
    let mut decoder = Decoder::default();
    assert!(decode(&mut decoder, &hex("3fe11f 82")).is_ok(), "4096 at the start");
    assert!(decode(&mut decoder, &hex("20 3fe11f 82")).is_ok(), "0 and 4096 again");
    let error = error_of(&mut decoder, &hex("82 20"), "behind a field");
    assert_eq!(error, "header compression: the table is resized in the middle of a block");
    let mut decoder = Decoder::default();
    let error = error_of(&mut decoder, &hex("3fe21f"), "4097");
    assert_eq!(error, "header compression: the table is made larger than was announced");

    let mut decoder = Decoder::default();
    decoder.acknowledged(100);
    let error = error_of(&mut decoder, &hex("82"), "no shrinking");
    assert_eq!(error, "header compression: the table is not made smaller, as was announced");
    let mut decoder = Decoder::default();
    decoder.acknowledged(100);
    assert!(decode(&mut decoder, &hex("3f45 82")).is_ok(), "100");
    assert!(decode(&mut decoder, &hex("82")).is_ok(), "once is enough");
    decoder.acknowledged(65_536);
    assert!(decode(&mut decoder, &hex("3fe1ff03 82")).is_ok(), "65,536 is announced");
}

#[test]
fn an_encoder_tells_of_every_change_that_matters() {
    let fields = list(&[("a", "b")]);
    let (mut decoder, mut encoder) = (Decoder::default(), Encoder::new(4096));
    for sizes in [&[4096][..], &[100], &[0, 4096], &[50, 200], &[]] {
        sizes.iter().for_each(|size| encoder.resize(*size));
        decoder.acknowledged(sizes.last().copied().unwrap_or(4096));
        for indexing in [Indexing::Insert, Indexing::Without, Indexing::Never] {
            let block = encode(&mut encoder, &fields, indexing);
            assert_eq!(decode(&mut decoder, &block), Ok(fields.clone()), "{sizes:?} {indexing:?}");
        }
    }
}

#[test]
fn a_header_list_that_is_exactly_as_large_as_the_cap_is_accepted() {
    // `:method: GET` counts 42.
    for (cap, fits) in [(84, true), (83, false), (0, false)] {
        let outcome = Decoder::default().decode(&[0x82, 0x82], cap, &mut |_| {});
        assert_eq!(outcome, if fits { Ok(()) } else { Err(Error::Limit) }, "{cap}");
    }
    let mut seen = 0;
    let bomb: Vec<u8> = [&hex("40 01 61 7f a11e")[..], &[b'a'; 4000], &[0xbe; 10_000]].concat();
    let outcome = Decoder::default().decode(&bomb, LIST_BYTES, &mut |_| seen += 1);
    assert_eq!((outcome, seen), (Err(Error::Limit), 16), "it ends where the cap is");
}

#[test]
fn secrets_are_written_out_and_never_indexed() {
    let mut block = Vec::new();
    literal::field(&mut block, b"authorization", b"Basic c2VjcmV0", true);
    assert_eq!(block[..2], [0x1f, 0x08], "never indexed, with the name of index 23");
    let expected = list(&[("authorization", "Basic c2VjcmV0")]);
    assert_eq!(decode(&mut Decoder::default(), &block), Ok(expected));
    let mut block = Vec::new();
    literal::field(&mut block, b":method", b"GET", true);
    assert_eq!(block[0], 0x12, "even what the static table has");
}

/// Names and values as they come: some stand in the static table, some come again.
fn any_field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let known = (0..fields::FIELDS.len()).prop_map(|at| {
        let (name, value) = fields::FIELDS[at];
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    });
    let few = ("[a-c]{1,2}", "[a-c]{0,2}").prop_map(|(name, value)| (name.into(), value.into()));
    let bytes = || prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![known, few, (bytes(), bytes())]
}

fn any_indexing() -> impl Strategy<Value = Indexing> {
    prop_oneof![Just(Indexing::Insert), Just(Indexing::Without), Just(Indexing::Never)]
}

proptest! {
    #[test]
    fn blocks_in_a_row_come_back(
        table_bytes in 0..600_u32,
        blocks in prop::collection::vec(
            (prop::collection::vec(any_field(), 0..8), any_indexing(), prop::option::of(0..600_u32)),
            1..12,
        ),
    ) {
        let (mut decoder, mut encoder) = (Decoder::default(), Encoder::new(4096));
        encoder.resize(table_bytes);
        for (list, indexing, resized) in blocks {
            resized.into_iter().for_each(|size| encoder.resize(size));
            let block = encode(&mut encoder, &list, indexing);
            prop_assert_eq!(decode(&mut decoder, &block), Ok(list));
        }
    }

    #[test]
    fn fields_without_a_table_say_the_same_at_any_time(list in prop::collection::vec(any_field(), 0..8), secret: bool) {
        let mut decoder = Decoder::default();
        decode(&mut decoder, &hex(REQUESTS[2].0.replace("bf", "82").as_str())).expect("legal");
        let (mut block, generation) = (Vec::new(), decoder.generation());
        for (name, value) in &list {
            literal::field(&mut block, name, value, secret);
        }
        prop_assert_eq!(decode(&mut decoder, &block), Ok(list));
        prop_assert_eq!(decoder.generation(), generation);
    }

    #[test]
    fn a_block_under_the_same_generation_says_the_same(list in prop::collection::vec(any_field(), 0..8)) {
        let (mut decoder, mut encoder) = (Decoder::default(), Encoder::new(4096));
        let first = encode(&mut encoder, &list, Indexing::Insert);
        decode(&mut decoder, &first).expect("legal");
        let again = encode(&mut encoder, &list, Indexing::Without);
        let generation = decoder.generation();
        for _ in 0..2 {
            prop_assert_eq!(decode(&mut decoder, &again), Ok(list.clone()));
            prop_assert_eq!(decoder.generation(), generation);
        }
    }

    #[test]
    fn whatever_comes_is_decoded_or_refused_within_the_cap(
        list in prop::collection::vec(any_field(), 0..8),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut block = encode(&mut Encoder::new(4096), &list, Indexing::Insert);
        for (at, byte) in changes {
            if !block.is_empty() {
                let at = at.index(block.len());
                block[at] = byte;
            }
        }
        block.extend(noise);
        let (mut decoder, mut size) = (Decoder::default(), 0);
        for _ in 0..3 {
            let outcome = decoder.decode(&block, 2000, &mut |field| {
                size += field.name.len() + field.value.len() + ENTRY_BYTES;
            });
            prop_assert!(size <= 2000);
            size = 0;
            if outcome.is_err() {
                break;
            }
        }
    }
}
