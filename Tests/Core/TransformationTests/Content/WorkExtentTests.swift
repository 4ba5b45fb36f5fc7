import Documents
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("How much work an event loop's thread does on content")
struct WorkExtentTests {
    /// A binary property list: an array that refers to one string this many times.
    static func list(naming string: String, times: Int) -> [UInt8] {
        func number(_ value: Int) -> [UInt8] { [0x11, UInt8(value >> 8), UInt8(value & 255)] }
        let array = [0xAF] + number(times) + [UInt8](repeating: 1, count: times)
        let text = [0x5F] + number(string.utf8.count) + Array(string.utf8)
        let header = Array("bplist00".utf8)
        let offsets = [header.count, header.count + array.count]
        let table = offsets.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        let end = header.count + array.count + text.count
        let counts = [2, 0, end].flatMap { count in
            (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
        return header + array + text + table + [UInt8](repeating: 0, count: 6) + [2, 1] + counts
    }

    /// 264 bytes that represent 8 to the power of 20 values.
    static let bomb: [UInt8] = {
        let objects = (0..<20).map { [0xA8] + [UInt8](repeating: $0 + 1, count: 8) } + [[0x51, 97]]
        var data = Array("bplist00".utf8)
        var table: [UInt8] = []
        for object in objects {
            table += [UInt8(data.count >> 8), UInt8(data.count & 255)]
            data += object
        }
        let counts = [objects.count, 0, data.count].flatMap { count in
            (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
        return data + table + [UInt8](repeating: 0, count: 6) + [2, 1] + counts
    }()

    private func plan() throws -> ContentPlan {
        var rules = ResponseRules()
        rules.body = ResponseBodyRules(from: .plist, to: .json)
        let checks = try #require(ResponseChecks(rules, schema: nil, images: FakeImages()))
        return try #require(
            try checks.plan(
                contentType: "application/x-plist", isPartial: false, noTransform: false))
    }

    @Test func `what is short is done briefly`() throws {
        let content = Self.list(naming: "word", times: 1000)
        let brief = try plan().run(content, .brief)
        #expect(try brief == plan().run(content, .full))
        #expect(brief.changed?.bytes.count == 1000 * 7 + 1)
    }

    @Test func `short content that becomes large is not worked on briefly`() throws {
        let content = Self.list(naming: String(repeating: "a", count: 1000), times: 1000)
        let failure = #expect(throws: TransformationError.self) {
            try plan().run(content, .brief)
        }
        #expect(failure?.reason == .responseBodyTooLarge)
        #expect(try plan().run(content, .full).changed?.bytes.count == 1000 * 1003 + 1)
    }

    @Test(arguments: [WorkExtent.brief, .full])
    func `content that becomes larger than the limit is refused`(extent: WorkExtent) throws {
        let failure = #expect(throws: TransformationError.self) {
            try plan().run(Self.bomb, extent)
        }
        #expect(failure?.reason == .responseBodyTooLarge)
        let values = extent == .brief ? 16 << 10 : 1 << 20
        #expect(failure?.detail.contains("\(values) values") == true)
    }

    @Test func `a request's content has the same limits`() throws {
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: .plist, to: .json)
        let translation = try #require(RequestTranslation(rules))
        let content = Self.list(naming: String(repeating: "a", count: 900), times: 900)
        let failure = #expect(throws: TransformationError.self) {
            try translation.translate(content, contentType: "application/x-plist", .brief)
        }
        #expect(failure?.reason == .requestBodyTooLarge)
        let whole = try translation.translate(content, contentType: "application/x-plist")
        #expect(whole.bytes.count == 900 * 903 + 1)
    }
}
