import Foundation
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// Renders with one of the log's text functions.
private func rendered(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer, inout LineBuffer) -> Void
) -> String {
    var output = LineBuffer(capacity: 4096)
    bytes.withUnsafeBytes { body($0, &output) }
    return String(decoding: output.bytes, as: UTF8.self)
}

@Suite("Access log: other texts")
struct AccessLogOtherTextTests {
    static let apache: [([UInt8], String)] = [
        ([], ""), (Array("GET /a b".utf8), "GET /a b"), (Array("a\"b\\c".utf8), #"a\"b\\c"#),
        ([0x08, 0x0a, 0x0d, 0x09, 0x0b], #"\b\n\r\t\v"#),
        ([0x00, 0x1f, 0x7f, 0x80, 0xff], #"\x00\x1f\x7f\x80\xff"#),
        (Array("é".utf8), #"\xc3\xa9"#),
    ]

    @Test(arguments: apache)
    func `texts are escaped as Apache escapes them`(bytes: [UInt8], expected: String) {
        #expect(rendered(bytes) { ApacheText.append($0, to: &$1) } == expected)
    }

    static let targets: [(String, String)] = [
        ("", ""), ("/", "/"), ("*", "*"), ("/a@b", "/a@b"), ("/p?u=a:b@c", "/p?u=a:b@c"),
        ("//u:p@h/", "//u:p@h/"),
        ("http://h/", "http://h/"), ("http://h/@x", "http://h/@x"),
        ("http://h?a@b", "http://h?a@b"), ("http://h#a@b", "http://h#a@b"),
        ("http://u:p@h/", "http://***@h/"), ("http://u@h", "http://***@h"),
        ("https://a@b@c:1/d@e", "https://***@c:1/d@e"), ("http://@h/", "http://***@h/"),
        ("u:p@h:443", "***@h:443"), ("h:443", "h:443"),
        ("HTTP://u:p@h?x://y@z", "HTTP://***@h?x://y@z"),
        ("http://u:p/a@h/", "http://u:p/a@h/"), ("ftp://u:p@[::1]:21", "ftp://***@[::1]:21"),
        ("http:/", "http:/"), (":", ":"), ("@", "***@"),
    ]

    @Test(arguments: targets)
    func `userinfo is not logged`(target: String, expected: String) {
        let logged = rendered(Array(target.utf8)) { bytes, output in
            Userinfo.redacting(bytes) { output.append($0) }
        }
        #expect(logged == expected)
    }

    static let cutTargets = [
        ("http://user:SECRET", "http://***"), ("http://a@SECRET", "http://***"),
        ("user:SECRET", "***"), ("http://host/a", "http://host/a"),
        ("http://u:p@host/a", "http://***@host/a"),
    ]

    @Test(arguments: cutTargets)
    func `userinfo is not logged where the text is cut within it`(start: String, shown: String) {
        let rest = String(repeating: "x", count: 1024)
        let logged = rendered(Array((start + rest).utf8)) { bytes, output in
            Userinfo.redacting(bytes) { output.append($0) }
        }
        #expect(logged == (shown.hasSuffix("***") ? shown : shown + rest))
    }

    @Test func `times are those of the calendar`() throws {
        let rfc3339 = DateFormatter()
        rfc3339.locale = Locale(identifier: "en_US_POSIX")
        rfc3339.timeZone = TimeZone(identifier: "UTC")
        rfc3339.dateFormat = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
        let common = DateFormatter()
        common.locale = Locale(identifier: "en_US_POSIX")
        common.timeZone = TimeZone(identifier: "UTC")
        common.dateFormat = "dd/MMM/yyyy:HH:mm:ss +0000"
        var values: [Int64] = [
            0, 999, 1000, -1, -1000, 951_782_399_999, 951_782_400_000, 951_868_800_000,
            1_709_164_800_000, 4_107_542_399_999, 4_107_542_400_000, 253_402_300_799_999,
            1_795_236_013_123, 1_795_236_013_124, 1_795_236_014_000,
        ]
        for step in 0..<500 { values.append(Int64(step) * 13_571_113_171) }
        var clock = LogClock()
        for value in values {
            let date = Date(timeIntervalSince1970: Double(value) / 1000)
            let text = rendered([]) { clock.appendRFC3339(value, to: &$1) }
            #expect(text == rfc3339.string(from: date))
            let commonText = rendered([]) { clock.appendCommonLog(value, to: &$1) }
            #expect(commonText == common.string(from: date))
        }
    }

    @Test func `a time beyond four-digit years is the nearest one within`() {
        var clock = LogClock()
        let last = rendered([]) { clock.appendRFC3339(.max, to: &$1) }
        #expect(last == "9999-12-31T23:59:59.999Z")
        let first = rendered([]) { clock.appendRFC3339(.min, to: &$1) }
        #expect(first == "0000-01-01T00:00:00.000Z")
    }
}

@Suite("Access log: the line buffer")
struct LineBufferTests {
    private func text(_ buffer: borrowing LineBuffer) -> String {
        String(decoding: buffer.bytes, as: UTF8.self)
    }

    /// Appends a line piece by piece; returns whether it fitted.
    private func add(_ pieces: [String], to buffer: inout LineBuffer) -> Bool {
        for piece in pieces { buffer.append(Array(piece.utf8)) }
        return buffer.endLine()
    }

    @Test func `a line that fills the buffer is kept, and a longer one is dropped whole`() {
        var buffer = LineBuffer(capacity: 10)
        var fitted = [add(["abc"], to: &buffer), add(["12345"], to: &buffer)]
        #expect(text(buffer) == "abc\n12345\n")
        buffer.removeAll()
        fitted += [add(["abc"], to: &buffer), add(["123456"], to: &buffer)]
        #expect(text(buffer) == "abc\n")
        // What follows the piece that did not fit does not count as a line either.
        fitted += [add(["12", "345678", "9"], to: &buffer), add(["12345"], to: &buffer)]
        #expect(text(buffer) == "abc\n12345\n")
        #expect(fitted == [true, true, true, false, false, true])
    }

    @Test func `numbers are written in decimal and hexadecimal`() {
        var buffer = LineBuffer(capacity: 200)
        buffer.append(decimal: 0)
        buffer.append(" ")
        buffer.append(decimal: .max)
        buffer.append(" ")
        buffer.append(decimal: 1234, digits: 3)
        buffer.append(" ")
        buffer.append(decimal: 7, digits: 2)
        buffer.append(" ")
        buffer.append(hexadecimal: 0x0123_4567_89ab_cdef)
        #expect(text(buffer) == "0 18446744073709551615 234 07 0123456789abcdef")
    }
}
