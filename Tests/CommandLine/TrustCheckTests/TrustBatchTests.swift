import HTTPCore
import Testing

@testable import pinfold

@Suite("Batches of trust questions")
struct TrustBatchTests {
    private func answers(_ input: String, by size: Int? = nil) -> [String] {
        var batch = TrustBatch()
        let bytes = Array(input.utf8)
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: size ?? max(1, bytes.count)) {
            text += batch.feed(bytes[start..<min(start + (size ?? bytes.count), bytes.count)])
        }
        text += batch.finish()
        return text.split(separator: "\n").map(String.init)
    }

    @Test(
        arguments: [
            ("x", "not JSON: not a JSON value, at byte 1"),
            ("[]", "an array; expected an object"),
            (#"{"hots": "a"}"#, #"unknown member "hots""#),
            (#"{"chain": 1}"#, "chain is a number; expected a string or a list of strings"),
            (#"{"chain": ["a", true]}"#, "chain[1] is a Boolean; expected a string"),
            (#"{"mode": "keys"}"#, #"mode: "keys" is unknown; expected one of none, publicKey"#),
            (#"{"allowInvalidCertificates": "yes"}"#, "expected true or false"),
            (#"{"at": "tomorrow"}"#, #"at: "tomorrow" is not a valid time"#),
            (#"{"profile": "severe"}"#, "expected one of lenient, strict, pedantic"),
            (#"{"pins": ["sha1/AAAA"]}"#, "only SHA-256 is supported"),
            (#"{"pins": ["/nowhere/at.all"]}"#, #"pin "/nowhere/at.all" cannot be read"#),
            (#"{"chain": "/nowhere/at.all", "roots": []}"#, #""/nowhere/at.all" cannot be read"#),
            (
                #"{"chain": "-----BEGIN CERTIFICATE-----\nAAAA", "roots": []}"#,
                "the PEM armor is damaged"
            ),
            (#"{"chain": "x", "roots": "/nowhere/at.all"}"#, #""/nowhere/at.all" cannot be read"#),
        ])
    func `a line that is not a question is answered with an error`(
        line: String, words: String
    ) throws {
        let found = answers("\n\(line)\n{\"id\":7,\"roots\":[]}\n")
        try #require(found.count == 2)
        #expect(found[0].contains(#""verdict":"error","reason":"bad-question","detail":"line 2: "#))
        let quoted = JSONText.quoted(words).dropFirst().dropLast()
        #expect(found[0].contains(quoted), "\(found[0])")
        // The next line is answered: it has no certificate.
        #expect(found[1].hasPrefix(#"{"id":7,"verdict":"fail","reason":"tls-no-certificate""#))
    }

    @Test(
        arguments: [
            ("null", "null"), ("7", "7"), (#""a\"b""#, #""a\"b""#), (#"{"x":[1]}"#, #"{"x":[1]}"#),
        ])
    func `the answer has the id of its question`(id: String, answered: String) {
        let found = answers("{\"id\":\(id),\"roots\":[],\"chain\":[]}")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("{\"id\":\(answered),\"verdict\":\"fail\"") == true)
    }

    @Test func `the split of the input into chunks does not matter`() {
        let input = "{\"id\":1,\"roots\":[]}\r\n\n  \nx\n{\"id\":\"é\",\"roots\":[]}"
        let whole = answers(input)
        #expect(whole.count == 3)
        for size in 1...input.utf8.count { #expect(answers(input, by: size) == whole) }
    }

    @Test func `a line that is too long is refused and the next one is answered`() {
        var batch = TrustBatch()
        let part = [UInt8](repeating: 0x20, count: 1 << 20)
        for _ in 0...16 { #expect(batch.feed(part[...]).isEmpty) }
        let answer = batch.feed(Array("\n{\"roots\":[]}\n".utf8)[...])
        #expect(answer.contains("line 1: longer than 16777216 bytes"))
        #expect(answer.contains("no-certificate"))
        #expect(batch.errorCount == 1)
    }

    @Test func `an answer is one line without control characters`() {
        let answer = TrustResult(TrustQueryError("a\u{1b}[2J\u{85}\n\"b\\\u{2028}"))
        #expect(
            answer.json == #"{"verdict":"error","reason":"bad-question","detail":"#
                + #""a\u001b[2J\u0085\n\"b\\\u2028"}"# + "\n")
    }
}
