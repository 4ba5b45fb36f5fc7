import Documents
import HTTPTypes
import Testing

@testable import PinfoldClient

/// Provides bytes a few at a time, and then reports the end.
private struct Trickle: ByteSource {
    var bytes: [UInt8]
    var step = 3

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = min(step, bytes.count, buffer.count)
        buffer.copyBytes(from: bytes.prefix(count))
        bytes.removeFirst(count)
        return count
    }
}

private struct ReadError: Error, CustomStringConvertible {
    var description: String { "the source is broken" }
}

@Suite("Multipart content")
struct MultipartTests {
    private func form() throws -> MultipartForm {
        try #require(MultipartForm(boundary: "B"))
    }

    private func text(_ form: MultipartForm) throws -> String {
        String(decoding: try form.body().bytes(), as: UTF8.self)
    }

    @Test func `parts of every kind, as they are written`() throws {
        var form = try form()
        form.append("välue", name: "field")
        form.append([1, 2], name: "raw")
        form.append(Array("{}".utf8), name: "f", fileName: "a.json", contentType: "text/json")
        try form.append(length: 5, name: "s", fileName: "s.bin", contentType: "x/y") {
            Trickle(bytes: Array("12345".utf8))
        }
        form.append(Array("own".utf8), fields: [.contentType: "text/plain"])
        let expected = [
            "--B", "Content-Disposition: form-data; name=\"field\"", "", "välue",
            "--B", "Content-Disposition: form-data; name=\"raw\"", "", "\u{1}\u{2}",
            "--B", "Content-Disposition: form-data; name=\"f\"; filename=\"a.json\"",
            "Content-Type: text/json", "", "{}",
            "--B", "Content-Disposition: form-data; name=\"s\"; filename=\"s.bin\"",
            "Content-Type: x/y", "", "12345",
            "--B", "Content-Type: text/plain", "", "own", "--B--", "",
        ].joined(separator: "\r\n")
        #expect(try text(form) == expected)
        #expect(form.body().length == Int64(expected.utf8.count))
    }

    @Test func `a form without parts is its closing line`() throws {
        #expect(try text(form()) == "--B--\r\n")
        #expect(try form().body().length == 7)
    }

    @Test(arguments: [
        ("a\"b", "a%22b"), ("a\r\nb", "a%0D%0Ab"), ("a\\b", "a\\b"), ("日本.txt", "日本.txt"),
        ("100%22", "100%22"), ("a\\", "a%5C"), ("a\\\\", "a\\%5C"), ("\\", "%5C"),
    ])
    func `names and file names are escaped`(name: String, escaped: String) throws {
        var form = try form()
        form.append([], name: name, fileName: name, contentType: "a/b\r\nX: 1")
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"\(escaped)\"; "
            + "filename=\"\(escaped)\"\r\nContent-Type: a/bX: 1\r\n\r\n\r\n--B--\r\n"
        #expect(try text(form) == expected)
    }

    @Test(arguments: ["", "a b", "a\"b", "ä", "a\r\nb", String(repeating: "a", count: 71)])
    func `an invalid boundary is rejected`(boundary: String) {
        #expect(MultipartForm(boundary: boundary) == nil)
    }

    @Test func `boundaries are new each time`() {
        let boundaries = Set((0..<1000).map { _ in MultipartForm().boundary })
        #expect(boundaries.count == 1000)
        #expect(boundaries.allSatisfy { MultipartForm(boundary: $0) != nil })
    }

    @Test(arguments: [1, 2, 3, 7, 64, 4096])
    func `however small the buffer, the content is the same`(size: Int) throws {
        var form = try form()
        form.append("value", name: "a")
        try form.append(length: 100, name: "b", fileName: "b", contentType: "x/y") {
            Trickle(bytes: Array(repeating: 7, count: 100))
        }
        form.append([], name: "empty")
        let whole = try form.body().bytes()
        let reader = form.body().makeReader()
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: size)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { break }
            bytes += buffer.prefix(count)
        }
        #expect(bytes == whole)
    }

    @Test func `each reader starts from the beginning`() throws {
        var form = try form()
        try form.append(length: 3, name: "s", fileName: "s", contentType: "x/y") {
            Trickle(bytes: [1, 2, 3])
        }
        let body = form.body()
        #expect(try body.bytes() == body.bytes())
    }

    @Test(arguments: [2, 4])
    func `a stream of another length than promised is an error`(length: Int64) throws {
        var form = try form()
        try form.append(length: length, name: "s", fileName: "s", contentType: "x/y") {
            Trickle(bytes: [1, 2, 3])
        }
        #expect(throws: MultipartError.length(expected: length, found: 3)) {
            try form.body().bytes()
        }
    }

    @Test(arguments: [-1, Int64.min, Int64.max])
    func `an impossible stream length is an immediate error`(length: Int64) throws {
        var form = try form()
        #expect(throws: MultipartError.length(expected: length, found: 0)) {
            try form.append(length: length, name: "s", fileName: "s", contentType: "x/y") {
                Trickle(bytes: [])
            }
        }
    }

    @Test func `a stream that cannot be opened is an error`() throws {
        var form = try form()
        try form.append(length: 3, name: "s", fileName: "s", contentType: "x/y") {
            throw ReadError()
        }
        #expect(throws: MultipartError.stream("the source is broken")) {
            try form.body().bytes()
        }
    }

    @Test func `a throttled read returns at most a packet`() throws {
        var form = try form()
        form.append([UInt8](repeating: 0, count: 100_000), name: "a")
        let reader = form.body(throttle: .slowNetwork).makeReader()
        #expect(reader.delay == .milliseconds(200))
        var sizes: [Int] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { break }
            sizes.append(count)
        }
        #expect(sizes.dropLast().allSatisfy { $0 == 16384 })
        #expect(sizes.reduce(0, +) == Int(form.body().length))
        #expect(form.body().makeReader().delay == nil)
    }
}
