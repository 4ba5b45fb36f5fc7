import Documents
import Synchronization
import Testing

/// Counts how often it was run.
private final class Counter: Sendable {
    let count = Atomic(0)

    var yieldPoint: YieldPoint { YieldPoint { [self] in count.add(1, ordering: .relaxed) } }
    var runs: Int { count.load(ordering: .relaxed) }
}

@Suite("Interludes in long documents")
struct YieldPointTests {
    private static let values = 2000
    private static let json = Array(
        "[\((0..<values).map { "\"\($0)\"" }.joined(separator: ","))]".utf8)

    private func propertyList(_ form: PropertyListForm) throws -> [UInt8] {
        let value = try JSONDocument.value(of: Self.json)
        switch form {
        case .xml:
            var writer = XMLPropertyListWriter()
            try value.replay(into: &writer)
            return try writer.finish()
        case .binary:
            var writer = BinaryPropertyListWriter()
            try value.replay(into: &writer)
            return try writer.finish()
        }
    }

    private func limits(_ counter: Counter) -> DocumentLimits {
        var limits = DocumentLimits.standard
        limits.yieldPoint = counter.yieldPoint
        return limits
    }

    @Test func `JSON has them while it is checked, and while its events are given`() throws {
        let (checked, read) = (Counter(), Counter())
        try JSONValidator.validate(Self.json, limits: limits(checked))
        let value = try JSONDocument.value(of: Self.json, limits: limits(read))
        #expect(try value == JSONDocument.value(of: Self.json))
        #expect(checked.runs >= Self.values / 100)
        #expect(read.runs >= 2 * Self.values / 100)
    }

    @Test(arguments: PropertyListForm.allCases)
    func `property lists have them while they are read`(form: PropertyListForm) throws {
        let counter = Counter()
        let list = try propertyList(form)
        let value = try PropertyListReader.value(of: list, limits: limits(counter))
        #expect(try value == JSONDocument.value(of: Self.json))
        #expect(counter.runs >= Self.values / 100)
    }

    @Test func `XML has them while it is read`() throws {
        let counter = Counter()
        let text = "<a>\(String(repeating: "<b c='d'/>", count: Self.values))</a>"
        _ = try XMLTree(Array(text.utf8), limits: limits(counter))
        #expect(counter.runs >= Self.values / 100)
    }

    @Test func `a binary property list has them while it is written`() throws {
        let counter = Counter()
        var writer = BinaryPropertyListWriter(limits: limits(counter))
        try JSONDocument.value(of: Self.json).replay(into: &writer)
        #expect(try writer.finish() == propertyList(.binary))
        #expect(counter.runs >= Self.values / 100)
    }
}
