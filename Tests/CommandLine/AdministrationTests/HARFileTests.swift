import Documents
import Foundation
import TestSupport
import Testing

@testable import pinfold

@Suite("A HAR file")
struct HARFileTests {
    private let folder = TemporaryFolder()

    private var path: String { folder.file("a.har") }

    private var bytes: [UInt8] { Array(FileManager.default.contents(atPath: path) ?? Data()) }

    private var log: DocumentValue? { (try? JSONDocument.value(of: bytes))?["log"] }

    private var entries: [DocumentValue] { log?.list("entries") ?? [] }

    @Test func `is complete after each entry`() throws {
        let file = try HARFile(path, replaces: false, limit: .max)
        #expect(log?["version"] == .string("1.2"))
        #expect(log?["creator"]?["name"] == .string("Pinfold"))
        #expect(entries.isEmpty)
        for number in 1...3 {
            #expect(try file.add("{\"_n\":\(number)}"))
            #expect(entries.count == number)
        }
        #expect(file.count == 3)
        try file.finish(dropped: 0)
        #expect(log?["_dropped"] == nil)
        try file.finish(dropped: 7)
        #expect(log?["_dropped"] == .number(7))
    }

    @Test func `takes nothing beyond its size`() throws {
        let file = try HARFile(path, replaces: false, limit: 150)
        var added = 0
        while try file.add("{\"a\":\"b\"}") { added += 1 }
        #expect(added > 0)
        #expect(bytes.count <= 150)
        #expect(entries.count == added)
    }

    @Test func `replaces no other unless that is asked for`() throws {
        let first = try HARFile(path, replaces: false, limit: .max)
        #expect(try first.add("1"))
        #expect(throws: HARFile.WriteError.self) {
            try HARFile(path, replaces: false, limit: .max)
        }
        #expect(entries.count == 1)
        _ = try HARFile(path, replaces: true, limit: .max)
        #expect(entries.isEmpty)
        #expect(throws: HARFile.WriteError.self) {
            try HARFile("/dev/null", replaces: true, limit: .max)
        }
    }

    @Test func `gets lines whole, however they arrive`() {
        let bytes = Array("one\n\ntwo\nthree".utf8)
        var whole = ArrivingLines()
        #expect(whole.add(bytes)?.map { String(decoding: $0, as: UTF8.self) } == ["one", "two"])
        var lines = ArrivingLines()
        var found: [[UInt8]] = []
        for byte in bytes { found += lines.add([byte]) ?? [] }
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == ["one", "two"])
    }
}
