import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("Field lines of responses")
struct FieldLineCacheTests {
    private let lines = FieldLineCache()

    private func read(_ text: [String], includesEngineFields: Bool = false) -> HTTPFields {
        let bytes = Array(text.map { $0 + "\r\n" }.joined().utf8)
        return bytes.withUnsafeBytes {
            lines.fields(of: $0, includesEngineFields: includesEngineFields)
        }.fields
    }

    @Test(arguments: [
        ("Server: nginx", "Server", "nginx"),
        ("server:nginx", "server", "nginx"),
        ("ETag: \t W/\"a\"", "ETag", "W/\"a\""),
        ("Age:", "Age", ""),
        (
            "X-Long: \(String(repeating: "v", count: 4096))", "X-Long",
            String(repeating: "v", count: 4096)
        ),
        ("Date: a:b, c:d", "Date", "a:b, c:d"),
    ])
    func `are a name and a value, the first time and later`(
        line: String, name: String, value: String
    ) {
        for _ in 0..<3 {
            let fields = read([line])
            #expect(fields.map(\.name.rawName) == [name])
            #expect(fields.map(\.value) == [value])
        }
    }

    @Test func `keep their order and their repetitions`() {
        let text = ["Vary: a", "X: 1", "Vary: b", "X: 1", "Vary: a"]
        for _ in 0..<3 {
            let fields = read(text)
            #expect(fields.map { "\($0.name.rawName): \($0.value)" } == text)
        }
    }

    @Test func `are distinguished by every byte`() {
        // Of every length up to one that is no longer cached.
        for count in 1..<(FieldLineCache.longestKept + 8) {
            let value = String(repeating: "a", count: count)
            for index in [0, count / 2, count - 1] {
                var bytes = Array(value.utf8)
                bytes[index] = UInt8(ascii: "b")
                let other = String(decoding: bytes, as: UTF8.self)
                #expect(read(["Etag: \(value)", "Etag: \(other)"]).map(\.value) == [value, other])
                #expect(read(["Etag: \(other)", "Etag: \(value)"]).map(\.value) == [other, value])
            }
        }
    }

    @Test func `are parsed once while they are repeated`() {
        for _ in 0..<100 { _ = read(["Server: nginx", "Content-Type: text/plain"]) }
        #expect(lines.readCount == 2)
    }

    @Test func `make the same fields only if all of them are the same`() {
        let heads = [
            ["Server: a", "Age: 1"], ["Server: a", "Age: 2"], ["Age: 1", "Server: a"],
            ["Server: a"], ["Server: a", "Age: 1", "Age: 1"], ["Server: a", "X-Token: 1"],
            ["Server: a", "X-Token: 2"], [],
        ]
        for first in heads {
            for second in heads {
                for text in [first, first, second, first] {
                    #expect(read(text).map { "\($0.name.rawName): \($0.value)" } == text)
                }
            }
        }
    }

    @Test func `are independent for each reader, whatever happens to other fields`() {
        var fields = read(["Server: a", "Age: 1"])
        fields[.age] = "2"
        fields[.server] = nil
        #expect(read(["Server: a", "Age: 1"]).map(\.value) == ["a", "1"])
    }

    @Test func `stay correct if there are more than can be cached`() {
        for round in 0..<3 {
            for number in 0..<5000 {
                #expect(read(["Content-Length: \(number)"]).first?.value == "\(number)", "\(round)")
            }
        }
    }

    @Test(arguments: [
        "Set-Cookie: session=1", "Location: /?token=1", "WWW-Authenticate: Basic realm=r",
        "Authentication-Info: nextnonce=1", "Authorization: Basic eA==", "X-Token: 1",
        "Link: </a>", "Content-Location: /a",
    ])
    func `that may contain a secret are not cached`(line: String) {
        for _ in 0..<3 { #expect(read([line]).count == 1) }
        #expect(lines.readCount == 3)
    }

    @Test func `of the engine are left out, each once`() {
        let text = [
            "Via: 1.1 far", "Cache-Status: far; hit", "Server: x", "Via: 1.1 own",
            "Cache-Status: own; fwd=miss",
        ]
        for _ in 0..<3 {
            #expect(
                read(text, includesEngineFields: true).map(\.value) == ["1.1 far", "far; hit", "x"])
            #expect(read(text).count == 5)
            #expect(read(["Server: x"], includesEngineFields: true).count == 1)
            #expect(read(["Cache-Status: own", "Via: own"], includesEngineFields: true).isEmpty)
        }
    }

    @Test func `are marked if they need action, in any order and letter case`() {
        func marks(_ text: String) -> FieldMarks {
            Array(text.utf8).withUnsafeBytes { lines.fields(of: $0, includesEngineFields: false) }
                .marks
        }
        for _ in 0..<3 {
            #expect(marks("Server: x\r\nDate: y\r\nX-Set-Cookie: a=b\r\n") == [])
            #expect(marks("") == [])
            #expect(marks("content-encoding: gzip\r\nServer: x\r\n") == .contentEncoding)
            #expect(marks("Server: x\r\nSET-COOKIE: a=b\r\nset-cookie: c=d\r\n") == .setCookie)
            #expect(marks("Authentication-Info: nextnonce=\"a\"\r\n") == .authenticationInfo)
            #expect(
                marks("Set-Cookie: a=b\r\nContent-Encoding: br\r\nAuthentication-Info: a=b\r\n")
                    == [.setCookie, .contentEncoding, .authenticationInfo])
        }
    }

    @Test func `keep bytes that are not UTF-8`() throws {
        let bytes = Array("Server: ".utf8) + [0xE9, 0xFF, 13, 10]
        for _ in 0..<3 {
            let fields = bytes.withUnsafeBytes {
                lines.fields(of: $0, includesEngineFields: false).fields
            }
            let field = try #require(fields.first)
            #expect(field.withUnsafeBytesOfValue { Array($0) } == [0xE9, 0xFF])
        }
    }

    @Test(arguments: ["", "no colon\r\n", "Server: no end", ": no name\r\n", "a b: c\r\n"])
    func `that are invalid are left out`(text: String) {
        let fields = Array(text.utf8).withUnsafeBytes {
            lines.fields(of: $0, includesEngineFields: false).fields
        }
        #expect(fields.isEmpty)
    }
}
