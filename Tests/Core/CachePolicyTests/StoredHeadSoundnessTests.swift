import HTTPCore
import Testing

@testable import CachePolicy

@Suite("A stored head that comes from elsewhere")
struct StoredHeadSoundnessTests {
    private func isSound(_ lines: [String], _ contentBytes: UInt64) -> Bool {
        StoredHead.isSound(
            Array(lines.map { $0 + "\r\n" }.joined().utf8), contentBytes: contentBytes)
    }

    private func isSound(_ fields: String..., status: Int = 200, content: UInt64 = 5) -> Bool {
        isSound(["HTTP/1.1 \(status) Reason", "Date: \(date())"] + fields, content)
    }

    private func isSound(ofParts fields: String..., status: Int = 200) -> Bool {
        isSound(["PART/1.1 \(status) OK", "Date: \(date())"] + fields, 16)
    }

    @Test func `it is sound as it was stored, with trailers too`() {
        for fields in [["Content-Length: 5"], [], ["content-length:5 ", "Via: 1.1 up", "x:"]] {
            let head = Stored(fields).head
            #expect(StoredHead.isSound(head, contentBytes: 5))
            let withTrailers = head + Array("\r\nX-Sum: 1\r\n".utf8)
            #expect(StoredHead.isSound(withTrailers, contentBytes: 5))
        }
        #expect(isSound(status: 204, content: 0))
        #expect(isSound("Content-Length: 0", status: 404, content: 0))
        #expect(isSound(content: 0))
    }

    @Test func `the length that it states is that of the content`() {
        #expect(!isSound("Content-Length: 5", content: 1000))
        #expect(!isSound("Content-Length: 5", content: 4))
        #expect(!isSound("Content-Length: 0"))
        #expect(!isSound("Content-Length: 5", "Content-Length: 5"))
        #expect(!isSound("Content-Length: 5, 5"))
        #expect(!isSound("Content-Length: 18446744073709551621"))
        #expect(!isSound("Content-Length: x"))
        #expect(!isSound("Content_Length: 5"))
    }

    @Test func `statuses that have no content have none, and some are not stored`() {
        #expect(!isSound(status: 204))
        #expect(!isSound(status: 304, content: 0))
        #expect(!isSound("Content-Range: bytes 0-4/9", status: 206))
    }

    @Test(arguments: StoredHead.excluded.ids)
    func `fields that no store keeps are not in it`(id: FieldID) {
        // What has no name of its own is a known one in disguise.
        let name = id == .disguised ? "Transfer_Encoding" : "\(id.name)"
        #expect(!isSound("\(name): 1"))
        #expect(!isSound("Content-Length: 5", "\(name.lowercased()): chunked"))
        #expect(!isSound(ofParts: "Content-Length: 5", "\(name): 1"))
    }

    @Test(arguments: ["A: \u{0}", "A: \r", "A: 1\rB: 2", "A:\u{7f}"])
    func `bytes that no field has are not in it`(field: String) {
        #expect(!isSound(field))
    }

    @Test func `one of parts states the length of the whole`() {
        #expect(isSound(ofParts: "Content-Length: 1"))
        #expect(isSound(ofParts: "Content-Length: 9223372036854775807"))
        #expect(!isSound(ofParts: "ETag: \"a\""))
        #expect(!isSound(ofParts: "Content-Length: 0"))
        #expect(!isSound(ofParts: "Content-Length: 9223372036854775808"))
        #expect(!isSound(ofParts: "Content-Length: 16", "Content-Length: 17"))
        #expect(!isSound(ofParts: "Content-Length: 5", "Content-Range: bytes 0-4/9"))
        #expect(!isSound(ofParts: "Content-Length: 5", status: 206))
    }
}
