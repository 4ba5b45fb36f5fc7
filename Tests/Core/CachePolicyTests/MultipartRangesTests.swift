import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Several ranges as a multipart/byteranges, by RFC 9110 §14.6")
struct MultipartRangesTests {
    @Test func `each part has its type and its place, in the order asked for`() throws {
        let stored = Stored(["Content-Type: text/plain; charset=utf-8"], body: 100)
        let request = Request(["Range: bytes=10-12,-2,0-0"])
        let parts = MultipartRanges(
            of: stored.metadata, storedHead: stored.head.span, for: request.head,
            in: request.bytes.span, boundary: 0xABC)
        let made = try #require(parts)
        let delimiter = "\r\n--section-0000000000000abc"
        let type = "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes "
        let heads = made.parts.map { String(decoding: $0.head, as: UTF8.self) }
        #expect(
            heads
                == ["10-12/100", "98-99/100", "0-0/100"].map {
                    delimiter + type + $0 + "\r\n\r\n"
                })
        #expect(made.parts.map(\.range) == [10..<13, 98..<100, 0..<1])
        #expect(String(decoding: made.end, as: UTF8.self) == delimiter + "--\r\n")
        #expect(Int(made.count) == heads.joined().utf8.count + 6 + made.end.count)
    }

    @Test func `without a type the parts have none, and the boundary is as long as any`() throws {
        for boundary in [0, 1, UInt64.max] {
            let made = MultipartRanges(
                [0..<1, 5..<9], of: 10, contentType: [], boundary: boundary)
            #expect(made.parts[0].head.count == "\r\n--section-".count + 16 + 34)
            let head = String(decoding: made.parts[1].head, as: UTF8.self)
            #expect(head.hasSuffix("\r\nContent-Range: bytes 5-8/10\r\n\r\n"))
        }
    }

    @Test func `the head says how long it is, and what its boundary is`() throws {
        let stored = Stored(["Content-Type: a/b", "ETag: \"x\""], body: 100)
        let request = Request(["Range: bytes=0-1,5-6"])
        let form = HitForm(
            of: stored.metadata, storedHead: stored.head.span, for: request.head,
            in: request.bytes.span, options: PolicyOptions())
        guard case .several(let count, let boundary) = form else {
            Issue.record("\(form)")
            return
        }
        let hit = CacheHit(form: form, age: 0, timeToLive: 1, stale: nil)
        #expect(
            HitHead.status(of: hit, stored: stored.metadata, storedHead: stored.head.span).code
                == 206)
        let text = written {
            HitHead.appendFields(
                hit, stored: stored.metadata, storedHead: stored.head.span, to: &$0)
        }
        let lines = text.split(separator: "\r\n")
        let types = lines.filter { $0.lowercased().hasPrefix("content-type:") }
        let name = MultipartRanges.text(boundary)
        #expect(types == ["Content-Type: multipart/byteranges; boundary=\(name)"])
        #expect(lines.contains("Content-Length: \(count)"))
        #expect(lines.contains("ETag: \"x\""))
    }
}
