import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

/// A table that expectations may change.
private final class Ledger {
    private var table: RejectionTable
    var count: Int { table.count }

    init(_ rules: RejectionRules, limit: Int = RejectionTable.limit) {
        table = RejectionTable(rules, limit: limit)
    }

    @discardableResult
    func note(_ signal: RejectionSignal, by pair: RejectionTable.Pair, at now: Int64) -> Bool {
        table.note(signal, by: pair, at: now)
    }

    func isGivenUp(_ pair: RejectionTable.Pair, at now: Int64) -> Bool {
        table.isGivenUp(pair, at: now)
    }

    func accepted(_ pair: RejectionTable.Pair) { table.accepted(pair) }
}

@Suite("Clients that reject interception certificates")
struct RejectionTableTests {
    private static let minute: Int64 = 60_000

    private func pair(_ client: String = "192.0.2.1", _ host: String = "a.test")
        -> RejectionTable.Pair
    {
        .init(client: IPNetwork(client)!, host: host)
    }

    private func rules(alerts: Int = 3, closes: Int = 5) -> RejectionRules {
        var rules = RejectionRules()
        rules.alerts = alerts
        rules.closes = closes
        rules.windowMilliseconds = 10 * Self.minute
        rules.periodMilliseconds = 60 * Self.minute
        return rules
    }

    /// What happens to one pair, in order.
    private enum Event { case alert, close, request }

    @Test(
        arguments: [
            ([.alert, .alert], false),
            ([.alert, .alert, .alert], true),
            ([.close, .close, .close, .close], false),
            ([.close, .close, .close, .close, .close], true),
            // Each kind is counted by itself.
            ([.alert, .alert, .close, .close, .close, .close], false),
            ([.alert, .close, .alert, .close, .alert], true),
            // A request shows that the authority is accepted.
            ([.alert, .alert, .request, .alert, .alert], false),
            ([.alert, .alert, .request, .alert, .alert, .alert], true),
            ([.close, .close, .close, .close, .request, .close], false),
            // From another tunnel, which was open before.
            ([.alert, .alert, .alert, .request], false),
        ] as [([Event], Bool)])
    private func `a client is given up after too many in a row`(events: [Event], isGivenUp: Bool) {
        let table = Ledger(rules())
        for event in events {
            switch event {
            case .alert: table.note(.alert, by: pair(), at: 0)
            case .close: table.note(.close, by: pair(), at: 0)
            case .request: table.accepted(pair())
            }
        }
        #expect(table.isGivenUp(pair(), at: 1) == isGivenUp)
    }

    @Test func `the rejection that exceeds the limit is reported, once`() {
        let table = Ledger(rules())
        let isReported = (0..<5).map { _ in table.note(.alert, by: pair(), at: 0) }
        #expect(isReported == [false, false, true, false, false])
    }

    @Test func `a limit of zero allows nothing`() {
        let table = Ledger(rules(alerts: 0, closes: 0))
        for signal in RejectionSignal.allCases {
            for _ in 0..<100 { #expect(!table.note(signal, by: pair(), at: 0)) }
        }
        #expect(!table.isGivenUp(pair(), at: 0))
        #expect(table.count == 0)
    }

    @Test(arguments: [(10 * minute - 1, true), (10 * minute, false)])
    func `rejections count within the window of the first`(third: Int64, isGivenUp: Bool) {
        let table = Ledger(rules())
        table.note(.alert, by: pair(), at: 0)
        table.note(.alert, by: pair(), at: Self.minute)
        #expect(table.note(.alert, by: pair(), at: third) == isGivenUp)
    }

    @Test func `after the period the client is tried again, and counted from zero`() {
        let table = Ledger(rules())
        for _ in 0..<3 { table.note(.alert, by: pair(), at: 5) }
        let end = 5 + 60 * Self.minute
        #expect(table.isGivenUp(pair(), at: end - 1))
        #expect(!table.isGivenUp(pair(), at: end))
        #expect(!table.note(.alert, by: pair(), at: end))
        #expect(!table.note(.alert, by: pair(), at: end))
        #expect(table.note(.alert, by: pair(), at: end))
    }

    @Test func `other clients and other hosts are not meant`() {
        let table = Ledger(rules(alerts: 1))
        #expect(table.note(.alert, by: pair(), at: 0))
        #expect(!table.isGivenUp(pair("192.0.2.2"), at: 0))
        #expect(!table.isGivenUp(pair("192.0.2.1", "b.test"), at: 0))
        #expect(table.isGivenUp(pair(), at: 0))
    }

    @Test func `the least recently used pair makes room`() {
        let table = Ledger(rules(alerts: 1), limit: 3)
        let hosts = ["a", "b", "c", "d"]
        for host in hosts.prefix(3) { table.note(.alert, by: pair("192.0.2.1", host), at: 0) }
        #expect(table.isGivenUp(pair("192.0.2.1", "a"), at: 0))
        table.note(.alert, by: pair("192.0.2.1", "d"), at: 0)
        #expect(table.count == 3)
        #expect(
            hosts.map { table.isGivenUp(pair("192.0.2.1", $0), at: 0) } == [
                true, false, true, true,
            ]
        )
    }

    @Test func `one client's rejections do not have another's tunnels intercepted again`() {
        let table = Ledger(rules(alerts: 1))
        #expect(table.note(.alert, by: pair("192.0.2.1"), at: 0))
        for number in 0..<4200 {
            table.note(.alert, by: pair("192.0.2.2", "n\(number).test"), at: 1)
        }
        #expect(table.count == RejectionTable.limit)
        #expect(table.isGivenUp(pair("192.0.2.1"), at: 2))
        #expect(table.isGivenUp(pair("192.0.2.2", "n4199.test"), at: 2))
    }
}

@Suite("The first bytes in a tunnel")
struct FirstBytesTests {
    @Test(
        arguments: [
            ([], .unknown),
            ([22], .unknown),
            ([22, 3], .tls),
            ([22, 3, 1, 0, 5], .tls),
            ([22, 2], .other),
            // An alert, and a ClientHello of SSL 2.
            ([21, 3, 1], .other),
            ([0x80, 0x2E, 1, 3, 1], .other),
            (Array("SSH-2.0-x".utf8), .other),
            (Array("G".utf8), .other),
            ([0], .other),
        ] as [([UInt8], FirstBytes)])
    func `a handshake record is TLS, and nothing else`(bytes: [UInt8], expected: FirstBytes) {
        #expect(bytes.withUnsafeBytes { FirstBytes($0) } == expected)
    }

    @Test func `no evidence changes nothing`() { #expect(FirstBytes(nil) == .unknown) }
}
