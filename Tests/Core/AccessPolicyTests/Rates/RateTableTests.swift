import HTTPCore
import Testing

@testable import AccessPolicy

@Suite("The table of those by whom rates count")
struct RateTableTests {
    private final class Account {
        let number: Int
        var isAtRest = false
        init(_ number: Int) { self.number = number }
    }

    private final class Tables {
        var table: RateTable<Account>
        var made = 0
        var now: Int64 = 0

        init(limit: Int) { table = RateTable(limit: limit) }

        func account(_ name: String, of client: Int, rule: String = "r") -> Account {
            now += 1
            return table.account(
                RateKey(rule: rule, subject: .user(name)),
                of: IPNetwork(client: .v4(UInt32(client))), at: now,
                make: {
                    made += 1
                    return Account(made)
                }, isAtRest: \.isAtRest)
        }
    }

    @Test func `an account is known again, for each rule`() {
        let tables = Tables(limit: 10)
        #expect(tables.account("a", of: 1) === tables.account("a", of: 2))
        #expect(tables.account("a", of: 1) !== tables.account("a", of: 1, rule: "s"))
        #expect(tables.account("b", of: 1) !== tables.account("a", of: 1))
        #expect(tables.made == 3)
    }

    @Test func `what is at rest gives way first`() {
        let tables = Tables(limit: 2)
        let one = tables.account("a", of: 1)
        tables.account("b", of: 2).isAtRest = true
        _ = tables.account("c", of: 3)
        #expect(tables.account("a", of: 1) === one)
        #expect(tables.table.count == 2)
    }

    @Test func `who fills the table counts as one, and gets rid of nothing`() {
        let tables = Tables(limit: 8)
        let other = tables.account("other", of: 2)
        let first = tables.account("0", of: 1)
        for number in 1..<7 { _ = tables.account("\(number)", of: 1) }
        let rest = tables.account("7", of: 1)
        // For each rule: what is used under one says nothing of another.
        let restOfOther = tables.account("7", of: 1, rule: "s")
        for number in 8..<100 {
            #expect(tables.account("\(number)", of: 1) === rest)
            #expect(tables.account("\(number)", of: 1, rule: "s") === restOfOther)
        }
        #expect(rest !== restOfOther)
        #expect(tables.account("other", of: 2) === other)
        #expect(tables.account("0", of: 1) === first)
        #expect(tables.table.count == 8 + 2)
    }

    @Test func `others take from whoever holds the most`() {
        let tables = Tables(limit: 4)
        for number in 0..<4 { _ = tables.account("\(number)", of: 1) }
        let two = tables.account("two", of: 2)
        let three = tables.account("three", of: 3)
        for number in 0..<20 { _ = tables.account("x\(number)", of: 1) }
        #expect(tables.account("two", of: 2) === two)
        #expect(tables.account("three", of: 3) === three)
        #expect(tables.table.count == 4 + 1)
    }

    @Test func `a full table of one each stays as it is for those who use it`() {
        let tables = Tables(limit: 3)
        let kept = (1...3).map { tables.account("\($0)", of: $0) }
        // Another rule: the client has its entry already.
        let rest = tables.account("1", of: 1, rule: "s")
        let another = tables.account("1", of: 1, rule: "t")
        for _ in 0..<5 {
            #expect(tables.account("1", of: 1) === kept[0])
            #expect(tables.account("1", of: 1, rule: "s") === rest)
            #expect(tables.account("1", of: 1, rule: "t") === another)
        }
        #expect(tables.account("2", of: 2) === kept[1])
        #expect(tables.account("3", of: 3) === kept[2])
    }
}
