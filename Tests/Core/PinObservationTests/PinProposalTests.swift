import HTTPCore
import Testing
import Trust

@testable import PinObservation

/// What is proposed to pin.
@Suite("A proposal of pins")
struct PinProposalTests {
    typealias Period = (leaf: String, key: String?, issuers: [[String]], days: ClosedRange<Int64>)

    private let usual = [["intermediate", "root"]]

    private func options(_ today: Int64) -> ProposalOptions { ProposalOptions(now: today * day) }

    private func refusal(_ host: ObservedHost, _ options: ProposalOptions) -> PinProposalReason? {
        do throws(PinProposalReason) {
            _ = try host.proposal(options)
            return nil
        } catch {
            return error
        }
    }

    private func pins(_ proposal: PinProposal) -> [SHA256Digest] { proposal.keys.map(\.key) }

    // MARK: What it proposes

    @Test func `has the leaf's key where it stayed the same over a renewal, and the issuer's`()
        throws
    {
        let host = host(
            ("a", "kept", usual, 0...47), ("b", "kept", usual, 47...90))
        let proposal = try host.proposal(options(90))
        #expect(pins(proposal) == [key("kept"), key("intermediate")])
        #expect(proposal.keys.map(\.role) == [.leaf, .issuer])
        #expect(proposal.keys.allSatisfy { $0.isSure })
        #expect(proposal.covered == 2 && proposal.certificates == 2)
        #expect(proposal.enforceFrom == 104 * day)
    }

    @Test func `has the issuer's key where the leaf's is new each time, and the root's`() throws {
        let host = host(
            ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        let proposal = try host.proposal(options(90))
        #expect(pins(proposal) == [key("intermediate"), key("root")])
        #expect(proposal.keys.allSatisfy { $0.role == .issuer && $0.isSure })
    }

    @Test func `has the root's key where intermediates change, and one seen before`() throws {
        let host = host(
            ("a", nil, [["r10", "root"]], 0...47), ("b", nil, [["r11", "root"]], 47...94),
            ("c", nil, [["r10", "root"]], 94...120))
        let proposal = try host.proposal(options(120))
        #expect(pins(proposal).first == key("root"))
        #expect(proposal.keys.count == 2 && proposal.covered == 3)
    }

    @Test func `is not sure before a renewal was seen`() throws {
        let host = host(("a", nil, usual, 0...10))
        let proposal = try host.proposal(options(10))
        #expect(pins(proposal) == [key("intermediate"), key("root")])
        #expect(!proposal.keys.contains { $0.isSure })
        #expect(proposal.remarks.contains { !$0.isSure && $0.text.contains("no renewal") })
    }

    @Test func `has a key that the operator names in place of another one`() throws {
        var options = options(90)
        options.backups = [key("spare")]
        let host = host(
            ("a", "kept", usual, 0...47), ("b", "kept", usual, 47...90))
        let proposal = try host.proposal(options)
        #expect(pins(proposal) == [key("kept"), key("spare")])
        #expect(proposal.keys[1].role == .backup && proposal.keys[1].subject == "")
    }

    @Test func `follows a change of the authority once it has lasted`() throws {
        let host = host(
            ("a", nil, usual, 0...47), ("b", nil, [["i2", "root2"]], 47...94),
            ("c", nil, [["i2", "root2"]], 94...100))
        let proposal = try host.proposal(options(100))
        #expect(proposal.keys[0].key == key("i2") && !proposal.keys[0].isSure)
        // The authority of the first certificate is none of the server's any more.
        #expect(pins(proposal)[1] == key("root2"))
        #expect(proposal.covered == 2 && proposal.certificates == 3)
    }

    @Test func `has a key of each where several authorities are in use`() throws {
        let host = host(
            ("a", nil, [["i1", "root1"]], 0...20), ("b", nil, [["i2", "root2"]], 0...20))
        #expect(Set(pins(try host.proposal(options(20)))) == [key("i1"), key("i2")])
    }

    @Test func `names the roots where a chain leads to more than one`() throws {
        let host = host(("a", nil, [["i", "old"], ["i", "x", "new"]], 0...20))
        let proposal = try host.proposal(options(20))
        #expect(pins(proposal)[0] == key("i"))
        #expect(proposal.remarks.contains { $0.text.contains("2 roots: CN=new; CN=old") })
    }

    // MARK: What it leaves out

    @Test func `leaves out what only a report-only pinset let pass`() throws {
        var host = host(("a", nil, usual, 0...20))
        host.note(sighting("evil", below: [["e", "er"]], at: 20 * day, isReported: true))
        let proposal = try host.proposal(options(20))
        #expect(pins(proposal) == [key("intermediate"), key("root")])
        #expect(proposal.remarks.contains { $0.text.hasPrefix("left out: 1 certificate ") })
    }

    @Test func `leaves out an attack that came and went`() throws {
        var host = host(
            ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        host.note(sighting("evil", below: [["e", "er"]], at: 60 * day, from: otherAddress))
        host.note(sighting("evil", below: [["e", "er"]], at: 62 * day, from: otherAddress))
        let proposal = try host.proposal(options(90))
        #expect(pins(proposal) == [key("intermediate"), key("root")])
        #expect(proposal.covered == 2 && proposal.certificates == 3)
    }

    @Test func `leaves out another authority that came and went, however long it was`() throws {
        for days in [[52, 60], [50, 51, 52, 53, 54, 55, 56, 57, 58]] as [[Int64]] {
            var host = host(
                ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
            for today in days {
                host.note(
                    sighting("evil", below: [["e", "er"]], at: today * day, from: otherAddress))
            }
            // Nor does one that lasted give a pin, unless the server shows its authority still.
            let proposal = try host.proposal(options(90))
            #expect(pins(proposal) == [key("intermediate"), key("root")])
            #expect(proposal.remarks[0].text.hasPrefix("2 of the 3 certificates"))
            #expect(!proposal.remarks[0].isSure)
        }
    }

    @Test(arguments: [(1, 5000, false), (10, 11, false), (10, 10, true), (10, 0, true)])
    func `counts a certificate unless report-only pinsets let it pass more often`(
        verified: UInt64, reported: UInt64, counts: Bool
    ) throws {
        var host = host(("a", nil, usual, 0...47))
        for today in 47...90 as ClosedRange<Int64> {
            var seen = sighting("b", below: [["other", "or"]], at: today * day)
            seen.count = verified
            host.note(seen)
            seen.count = reported
            seen.isReported = true
            if reported > 0 { host.note(seen) }
        }
        let error = refusal(host, options(90))
        let proposal = try? host.proposal(options(90))
        #expect((proposal?.keys.contains { $0.key == key("other") } ?? false) == counts)
        // Without it, the server was seen last before that.
        #expect(error == (counts ? nil : .notSeenLately(last: 47 * day)))
    }

    @Test func `leaves out what a report-only pinset let pass the last time`() throws {
        var server = host(
            ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        var seen = sighting("b", below: usual, at: 90 * day + 1, isReported: true)
        server.note(seen)
        // The one before is all that is left, and was seen too long ago.
        #expect(refusal(server, options(91)) == .notSeenLately(last: 47 * day))
        var alone = host(("b", nil, usual, 47...90))
        alone.note(seen)
        #expect(refusal(alone, options(91)) == .onlyReported)
        // Another process's record of it, from before, changes nothing.
        alone.merge(host(("b", nil, usual, 47...90)))
        #expect(refusal(alone, options(91)) == .onlyReported)
        // It passes by itself again: what is pinned is no longer against it.
        (seen.isReported, seen.time) = (false, 91 * day)
        server.note(seen)
        #expect(try pins(server.proposal(options(91)))[0] == key("intermediate"))
        // And what another process has verified since is no report.
        alone.merge(host(("b", nil, usual, 47...92)))
        #expect(try pins(alone.proposal(options(92)))[0] == key("intermediate"))
    }

    @Test func `leaves out one by the same root, too`() throws {
        var host = host(
            ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        host.note(sighting("evil", below: [["e", "root"]], at: 60 * day, from: otherAddress))
        let proposal = try host.proposal(options(90))
        #expect(pins(proposal)[0] == key("intermediate") && proposal.keys[0].isSure)
    }

    // MARK: What it refuses

    @Test func `is refused for a host that only a report-only pinset let pass`() {
        var host = ObservedHost(name: name, time: 0)
        for today in 0...20 {
            host.note(sighting("a", at: Int64(today) * day, isReported: true))
        }
        #expect(refusal(host, options(20)) == .onlyReported)
    }

    @Test func `is refused before the minimum`() {
        let host = host(("a", nil, usual, 0...6))
        #expect(
            refusal(host, options(100))
                == .observedTooShort(seconds: 6 * day, minimum: 7 * day))
        var shorter = options(6)
        shorter.minimum = day
        #expect(refusal(host, shorter) == nil)
    }

    @Test func `is refused for a host that was seen on too few days`() {
        var host = ObservedHost(name: name, time: 0)
        for time in [0, 3600, 10 * day] { host.note(sighting("a", at: time)) }
        #expect(refusal(host, options(11)) == .tooFewDays(2, minimum: 3))
        host.note(sighting("a", at: 11 * day))
        #expect(refusal(host, options(11)) == nil)
    }

    @Test(arguments: [(0, 1), (day, 1), (2 * day, 2), (7 * day, 3), (90 * day, 3)])
    func `needs as many days as the minimum has, but three at most`(minimum: Int64, days: Int) {
        var options = options(0)
        options.minimum = minimum
        #expect(options.minimumDays == days)
    }

    @Test func `is refused for a host that was not seen lately`() {
        let host = host(("a", nil, usual, 0...20))
        #expect(refusal(host, options(50)) == nil)
        #expect(refusal(host, options(51)) == .notSeenLately(last: 20 * day))
    }

    @Test(arguments: ["er", "root"])
    func `is refused while a strange certificate is in use`(root: String) {
        var host = host(
            ("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        host.note(sighting("evil", below: [["e", root]], at: 90 * day, from: otherAddress))
        let reason = refusal(host, options(90))
        guard case .strangeKey(let subject, _, let since, let addresses)? = reason else {
            Issue.record("it is not refused for that")
            return
        }
        #expect(subject == "CN=evil" && since == 90 * day && addresses == 1)
    }

    @Test(arguments: [("1.5", HostPatternError.address), ("123", .address), ("a b", .character)])
    func `is refused for a name that no entry can have`(text: String, error: HostPatternError) {
        var host = host(("a", nil, usual, 0...20))
        host.name.host = text
        #expect(refusal(host, options(20)) == .noPattern(error))
    }

    @Test func `is refused without a second key`() {
        let host = host(
            ("a", nil, [["root"]], 0...47), ("b", nil, [["root"]], 47...90))
        #expect(refusal(host, options(90)) == .noSecondKey)
        var options = options(90)
        options.backups = [key("spare")]
        #expect(refusal(host, options) == nil)
    }

    @Test func `is refused where too many authorities are in use`() {
        let host = host(
            ("a", nil, [["i1", "r1"]], 0...20), ("b", nil, [["i2", "r2"]], 0...20),
            ("c", nil, [["i3", "r3"]], 0...20), ("d", nil, [["i4", "r4"]], 0...20),
            ("e", nil, [["i5", "r5"]], 0...20))
        #expect(refusal(host, options(20)) == .tooManyIssuers(5))
    }

    @Test func `gives a reason in words for each refusal`() {
        let reasons: [PinProposalReason] = [
            .neverSeen, .onlyReported, .observedTooShort(seconds: 3600, minimum: day),
            .tooFewDays(2, minimum: 3), .notSeenLately(last: 0),
            .strangeKey(subject: "CN=a", issuer: "CN=b", since: 0, addresses: 1),
            .noPattern(.address), .tooManyIssuers(9), .noSecondKey,
        ]
        #expect(Set(reasons.map(\.token)).count == reasons.count)
        #expect("\(reasons[2])" == "it was seen for 1 hour; expected at least 1 day (--minimum)")
    }
}

/// How near a pinset is to an outage.
@Suite("The outlook of a pinset")
struct PinsetOutlookTests {
    private let usual = [["intermediate", "root"]]

    private func concerns(
        _ keys: [SHA256Digest], _ hosts: [ObservedHost], now: Int64, ends: Int64? = nil,
        hasMatched: Bool? = true
    ) -> [String] {
        PinsetOutlook(
            PinsetOutlook.Subject(
                name: "p", keys: keys, pins: keys.count, isEnforced: true, ends: ends,
                hasMatched: hasMatched),
            hosts: hosts, now: now
        ).concerns.map(\.token)
    }

    @Test func `has no concerns where several keys are in use and nothing ends`() {
        let host = host(("a", nil, usual, 0...47), ("b", nil, usual, 47...90))
        #expect(concerns([key("intermediate"), key("root")], [host], now: 90 * day) == [])
    }

    @Test func `names a single key, and one that never matched`() {
        let host = host(("a", nil, usual, 0...20))
        #expect(concerns([key("root")], [host], now: 20 * day) == ["one-key"])
        #expect(
            concerns([key("x"), key("y")], [host], now: 20 * day, hasMatched: false)
                == ["never-matched", "not-pinned"])
        #expect(
            concerns([key("root"), key("spare")], [host], now: 20 * day) == ["one-key-in-use"])
        #expect(concerns([key("x"), key("y")], [], now: 0) == ["not-observed"])
    }

    @Test func `names a pinned leaf whose key was new at each renewal`() {
        var host = host(("a", nil, usual, 0...47))
        host.note(sighting("b", at: 48 * day, notAfter: 95 * day))
        host.note(sighting("b", at: 80 * day, notAfter: 95 * day))
        let outlook = PinsetOutlook(
            PinsetOutlook.Subject(
                name: "p", keys: [key("b"), key("spare")], pins: 2, isEnforced: true, ends: nil,
                hasMatched: true),
            hosts: [host], now: 90 * day)
        #expect(outlook.concerns.contains(.leafChanges(host: name, days: 5)))
        #expect(outlook.level == .critical)
    }

    @Test func `names a new certificate at one address only`() {
        var host = host(("a", nil, usual, 0...47))
        host.note(sighting("b", at: 47 * day, from: otherAddress))
        #expect(
            concerns([key("intermediate"), key("root")], [host], now: 48 * day)
                == ["one-address"])
    }

    @Test(arguments: [(30, true), (31, false), (200, false)] as [(Int64, Bool)])
    func `judges a host by what it showed for thirty days only`(days: Int64, judges: Bool) {
        var host = host(("a", nil, usual, 0...47))
        // Its certificate ends on the day after it was seen last, and has a pinned key of its own.
        host.note(sighting("b", at: 48 * day, notAfter: 49 * day))
        for keys in [[key("b"), key("spare")], [key("x"), key("y")]] {
            let outlook = PinsetOutlook(
                PinsetOutlook.Subject(
                    name: "p", keys: keys, pins: 2, isEnforced: true, ends: nil, hasMatched: true),
                hosts: [host], now: (48 + days) * day)
            #expect((outlook.level == .critical) == judges)
            #expect((outlook.concerns == [.notSeenLately(host: name, last: 48 * day)]) == !judges)
        }
    }

    @Test func `names an end that is near`() {
        let host = host(("a", nil, usual, 0...20))
        #expect(
            concerns([key("intermediate"), key("root")], [host], now: 20 * day, ends: 40 * day)
                == ["expires"])
    }
}
