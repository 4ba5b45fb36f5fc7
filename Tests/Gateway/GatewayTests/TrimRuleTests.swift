import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("When free memory is given back")
struct TrimRuleTests {
    private static let mib = 1 << 20

    /// The rule's results for a series of checks, each in MiB.
    private func due(_ looks: [(free: Int, resident: Int, inUse: Int)]) -> [Bool] {
        var rule = TrimRule()
        return looks.map {
            rule.isDue(
                free: $0.free * Self.mib, resident: $0.resident * Self.mib,
                inUse: $0.inUse * Self.mib)
        }
    }

    @Test func `what has been free for two checks is returned once`() {
        let looks = [(0, 50, 20), (400, 450, 20), (400, 450, 20), (400, 60, 20), (400, 60, 20)]
        #expect(due(looks) == [false, false, true, false, false])
    }

    @Test func `what is used again at once is kept`() {
        let looks = [(400, 450, 20), (10, 450, 410), (400, 450, 20), (10, 450, 410)]
        #expect(due(looks) == [false, false, false, false])
    }

    @Test func `a little is kept`() {
        #expect(due([(31, 60, 20), (31, 60, 20), (31, 60, 20)]) == [false, false, false])
    }

    @Test func `pages that the system has already are not returned again`() {
        // 400 MiB are free by malloc's count, but the process has 10 beyond what is in use.
        #expect(due([(400, 30, 20), (400, 30, 20), (400, 30, 20)]) == [false, false, false])
    }

    @Test func `what could not be returned is not tried again, but more is`() {
        let looks = [
            (100, 150, 20), (100, 150, 20), (100, 150, 20), (100, 150, 20), (140, 190, 20),
            (140, 190, 20),
        ]
        #expect(due(looks) == [false, true, false, false, false, true])
    }
}
