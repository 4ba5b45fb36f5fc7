import Testing

@testable import RedisProtocol

@Suite("The values of replies of Redis")
struct RESPValueTests {
    @Test func `are integers also if they are written as strings`() {
        #expect(RESPValue.integer(5).integer == 5)
        #expect(RESPValue.string("5").integer == 5)
        #expect(RESPValue.word("-5").integer == -5)
        #expect(RESPValue.string("5x").integer == nil)
        #expect(RESPValue.string("").integer == nil)
        #expect(RESPValue.double(5).integer == nil)
    }

    @Test func `are maps also if RESP2 has an array for one`() {
        let entries = [RESPEntry("a", .integer(1)), RESPEntry("b", .null)]
        #expect(RESPValue.map(entries).entries == entries)
        let flat = RESPValue.array([.string("a"), .integer(1), .string("b"), .null])
        #expect(flat.entries == entries)
        #expect(flat.value(of: "a") == .integer(1))
        #expect(flat.value(of: "b") == .null)
        #expect(flat.value(of: "c") == nil)
        #expect(RESPValue.array([.string("a")]).entries == nil)
        #expect(RESPValue.set([]).entries == nil)
    }

    @Test func `are strings of three kinds`() {
        #expect(RESPValue.string("a").text == "a")
        #expect(RESPValue.word("a").text == "a")
        #expect(RESPValue.verbatim(format: Array("txt".utf8), Array("a".utf8)).text == "a")
        #expect(RESPValue.failing("a").text == nil)
        #expect(RESPValue.word("OK").isOK)
        #expect(RESPValue.string("OK").isOK)
        #expect(!RESPValue.word("QUEUED").isOK)
    }

    @Test func `have elements if they are arrays or sets`() {
        #expect(RESPValue.array([.null]).elements == [.null])
        #expect(RESPValue.set([.null]).elements == [.null])
        #expect(RESPValue.map([]).elements == nil)
        #expect(RESPValue.null.elements == nil)
    }
}
