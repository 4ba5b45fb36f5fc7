import HTTPCore
import TestSupport
import Testing

@testable import Authentication

private let home = IPNetwork(client: IPAddress("192.0.2.1")!)
private let office = IPNetwork(client: IPAddress("198.51.100.1")!)
private let key = ProofKey(random: (1, 2, 3, 4))

private func check(
    _ client: IPNetwork, _ user: String = "ann", _ password: String = "p",
    hash: String = Sample.bcrypt
) -> PasswordCheck {
    let hash = try! users("x:\(hash)").hash(of: "x")!
    let token = Base64.encode(Array("\(user):\(password)".utf8))
    return PasswordCheck(
        proof: key.digest(of: "Basic \(token)".utf8.span), client: client,
        UserPassword(token: token.utf8.span)!, hash: hash, isDecoy: false)
}

@Suite("Credentials that were verified")
struct VerifiedCredentialsTests {
    private let digest = key.digest(of: "Basic x".utf8.span)

    private func store(_ hash: String, groups text: String = "") throws -> CredentialStore {
        CredentialStore(
            realm: "r", users: try users("ann:\(hash)"), groups: try groups(text), tokens: nil)
    }

    @Test func `they are known for a bounded time`() throws {
        let store = try store(Sample.bcrypt)
        let hash = try #require(store.users?.hash(of: "ann"))
        let identity = try #require(store.identity(of: "ann", by: hash))
        var verified = VerifiedCredentials()
        #expect(verified.identity(by: digest, in: store, at: 0, wall: 0) == nil)
        verified.remember(digest, identity, in: store, from: home, at: 1000)
        #expect(verified.identity(by: digest, in: store, at: 1000, wall: 0) === identity)
        let end = 1000 + VerifiedCredentials.milliseconds
        #expect(verified.identity(by: digest, in: store, at: end - 1, wall: 0) === identity)
        #expect(verified.identity(by: digest, in: store, at: end, wall: 0) == nil)
        #expect(verified.count == 0)
    }

    @Test func `after the file has changed only the same password is still known`() throws {
        let before = try store(Sample.bcrypt)
        let hash = try #require(before.users?.hash(of: "ann"))
        let identity = try #require(before.identity(of: "ann", by: hash))
        var verified = VerifiedCredentials()
        verified.remember(digest, identity, in: before, from: home, at: 0)
        let regrouped = try store(Sample.bcrypt, groups: "staff: ann")
        #expect(verified.identity(by: digest, in: regrouped, at: 1, wall: 0)?.groups == ["staff"])
        #expect(verified.identity(by: digest, in: regrouped, at: 2, wall: 0)?.groups == ["staff"])
        let changed = try store(Sample.sha256)
        #expect(verified.identity(by: digest, in: changed, at: 3, wall: 0) == nil)
        #expect(verified.identity(by: digest, in: regrouped, at: 4, wall: 0) == nil)
        verified.remember(digest, identity, in: before, from: home, at: 0)
        let removed = CredentialStore(
            realm: "r", users: try users("bob:\(Sample.bcrypt)"), groups: nil, tokens: nil)
        #expect(verified.identity(by: digest, in: removed, at: 3, wall: 0) == nil)
    }

    @Test func `whoever floods the table loses their own`() throws {
        let store = try store(Sample.bcrypt)
        let hash = try #require(store.users?.hash(of: "ann"))
        let identity = try #require(store.identity(of: "ann", by: hash))
        var verified = VerifiedCredentials(limit: 10)
        verified.remember(digest, identity, in: store, from: home, at: 0)
        for number in 0..<100 {
            let other = key.digest(of: "\(number)".utf8.span)
            verified.remember(other, identity, in: store, from: office, at: 0)
        }
        #expect(verified.count == 10)
        #expect(verified.identity(by: digest, in: store, at: 1, wall: 0) != nil)
    }

    @Test func `digests depend on the key and on every byte`() {
        let value = Array("Basic dTpw".utf8)
        var seen: Set<ProofDigest> = [key.digest(of: value.span), ProofDigest(of: value.span)]
        for place in value.indices {
            var other = value
            other[place] ^= 1
            seen.insert(key.digest(of: other.span))
        }
        seen.insert(ProofKey(random: (1, 2, 3, 5)).digest(of: value.span))
        seen.insert(key.digest(of: value.span.extracting(0..<9)))
        #expect(seen.count == value.count + 4)
        let token = ProofDigest(of: "opensesame".utf8.span)
        #expect(token == ProofDigest(hexadecimal: Array(tokenDigest.utf8)[...]))
    }

    @Test func `tokens are worth what their line says until they end`() throws {
        let store = CredentialStore(
            realm: "r", users: nil, groups: nil,
            tokens: try tokens("ci:\(tokenDigest):build:1970-01-01T00:01:40Z"))
        let digest = ProofDigest(of: "opensesame".utf8.span)
        guard case .accepted(let identity) = store.identity(ofToken: digest, at: 99) else {
            Issue.record("it has not ended")
            return
        }
        #expect(identity.isMember(of: "build") && !identity.isMember(of: "buil"))
        #expect(store.identity(ofToken: digest, at: 100) == .expired)
        #expect(store.identity(ofToken: self.digest, at: 99) == .unknown)
    }

    /// What may keep a tunnel open after the files have changed.
    @Test func `only the same proof of the same user in the same groups is confirmed`() throws {
        func store(
            _ lines: String, groups text: String = "staff: ann", tokens tokenLines: String = ""
        ) throws -> CredentialStore {
            CredentialStore(
                realm: "r", users: try users(lines), groups: try groups(text),
                tokens: try tokens(tokenLines))
        }
        let before = try store(
            "ann:\(Sample.bcrypt)", tokens: "ci:\(tokenDigest):build:1970-01-01T00:01:40Z")
        let hash = try #require(before.users?.hash(of: "ann"))
        let ann = try #require(before.identity(of: "ann", by: hash))
        #expect(before.confirms(ann, at: 1 << 40))
        #expect(try store("bob:\(Sample.sha256)\nann:\(Sample.bcrypt)").confirms(ann, at: 0))
        #expect(try !store("ann:\(Sample.sha256)").confirms(ann, at: 0))
        #expect(try !store("bob:\(Sample.bcrypt)").confirms(ann, at: 0))
        #expect(try !store("ann:\(Sample.bcrypt)", groups: "").confirms(ann, at: 0))
        #expect(
            try !store("ann:\(Sample.bcrypt)", groups: "staff: ann\nmore: ann")
                .confirms(ann, at: 0))

        let digest = ProofDigest(of: "opensesame".utf8.span)
        let ci = try #require(before.tokens?[digest])
        #expect(before.confirms(ci, at: 99) && !before.confirms(ci, at: 100))
        func confirms(_ lines: String, at now: Int64 = 50) throws -> Bool {
            try store("", tokens: lines).confirms(ci, at: now)
        }
        // Whatever becomes of its end, it is the same token.
        #expect(try confirms("ci:\(tokenDigest):build", at: 100))
        #expect(try !confirms("ci:\(tokenDigest):build:1970-01-01T00:00:50Z"))
        #expect(try !confirms("ci:\(tokenDigest)") && !confirms("me:\(tokenDigest):build"))
        let other = String(repeating: "0", count: 64)
        #expect(try !confirms("ci:\(other):build") && !confirms(""))
        let nobody = CredentialStore(realm: "r", users: nil, groups: nil, tokens: nil)
        #expect(!nobody.confirms(ann, at: 0) && !nobody.confirms(ci, at: 0))
    }
}

@Suite("Delays after failures")
struct FailureDelayTests {
    @Test func `failures double the delay up to the longest`() {
        let delays = (0...12).map { FailureDelays().delay(after: $0) }
        #expect(
            delays == [
                0, 0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000,
            ])
        #expect(FailureDelays().delay(after: .max) == 30_000)
    }

    @Test func `attempts one after the other are delayed as they fail`() {
        var delays = FailureDelays()
        var now: Int64 = 0
        var waits: [Int64] = []
        for _ in 0..<8 {
            guard case .at(let start) = delays.begin(home, "ann", at: now) else { break }
            waits.append(start - now)
            now = start
        }
        #expect(waits == [0, 0, 0, 0, 1000, 2000, 4000, 8000])
    }

    @Test func `attempts at the same time get their turns one behind the other`() {
        var delays = FailureDelays()
        let starts = (0..<12).map { _ in delays.begin(home, "ann", at: 0) }
        let times: [Int64] = [0, 0, 0, 0, 1000, 3000, 7000, 15_000]
        #expect(Array(starts[..<8]) == times.map { FailureDelays.Start.at($0) })
        // Further away than the longest delay: whoever comes back then has the next turn.
        #expect(starts[8...].allSatisfy { $0 == .refused(until: 31_000) })
        #expect(delays.begin(home, "ann", at: 31_000) == .at(31_000))
    }

    @Test func `neither another network nor another user is slowed`() {
        var delays = FailureDelays()
        for _ in 0..<20 { _ = delays.begin(home, "ann", at: 0) }
        #expect(delays.begin(office, "ann", at: 0) == .at(0))
        #expect(delays.begin(home, "bob", at: 0) == .at(0))
    }

    @Test func `success and time forget failures`() {
        var delays = FailureDelays()
        for _ in 0..<5 { _ = delays.begin(home, "ann", at: 0) }
        delays.succeeded(home, "ann")
        #expect(delays.begin(home, "ann", at: 1) == .at(1))
        for _ in 0..<5 { _ = delays.begin(home, "ann", at: 1) }
        #expect(
            delays.begin(home, "ann", at: 1 + FailureDelays.forgottenAfter)
                == .at(1 + FailureDelays.forgottenAfter))
    }

    @Test func `what was given up does not count but keeps its turn`() {
        var delays = FailureDelays()
        for _ in 0..<4 { _ = delays.begin(home, "ann", at: 0) }
        #expect(delays.begin(home, "ann", at: 0) == .at(1000))
        delays.withdrawn(home, "ann")
        #expect(delays.begin(home, "ann", at: 0) == .at(3000))
    }

    @Test func `attempts that are all given up leave nothing behind`() {
        var delays = FailureDelays(limit: 100)
        for _ in 0..<5 { _ = delays.begin(office, "ann", at: 0) }
        for number in 0..<1000 {
            _ = delays.begin(home, "user\(number)", at: 0)
            delays.withdrawn(home, "user\(number)")
            delays.withdrawn(home, "user\(number)")
        }
        #expect(delays.count == 1)
        #expect(delays.begin(office, "ann", at: 0) == .at(3000))
    }

    @Test func `attempts that cannot wait are refused after failures until their time`() {
        var delays = FailureDelays(free: 2)
        #expect(delays.pause(home, "", at: 0) == 0)
        for _ in 0..<2 { delays.failed(home, "", at: 0) }
        #expect(delays.pause(home, "", at: 0) == 0)
        for _ in 0..<2 { delays.failed(home, "", at: 100) }
        #expect(delays.pause(home, "", at: 100) == 2000)
        #expect(delays.pause(home, "", at: 2099) == 1)
        #expect(delays.pause(home, "", at: 2100) == 0)
        #expect(delays.pause(office, "", at: 100) == 0)
        for _ in 0..<100 { delays.failed(home, "", at: 3000) }
        #expect(delays.pause(home, "", at: 3000) == 30_000)
        let later = 3000 + FailureDelays.forgottenAfter
        #expect(delays.pause(home, "", at: later) == 0)
        delays.failed(home, "", at: later)
        #expect(delays.pause(home, "", at: later) == 0)
    }

    @Test func `the table is bounded, and whoever fills it loses their own`() {
        var delays = FailureDelays(limit: 100)
        for _ in 0..<5 { _ = delays.begin(home, "ann", at: 0) }
        for number in 0..<1000 { _ = delays.begin(office, "user\(number)", at: 0) }
        #expect(delays.count == 100)
        #expect(delays.begin(home, "ann", at: 0) == .at(3000))
    }
}

@Suite("The queue of password checks")
struct CheckQueueTests {
    private typealias Queue = CheckQueue<Int>

    private func number(_ step: Queue.Step) -> Int? {
        if case .check(let number, _) = step { number } else { nil }
    }

    private func user(_ step: Queue.Step) -> String? {
        if case .check(_, let check) = step { check.user } else { nil }
    }

    private func ticket(_ addition: Queue.Addition?) -> Queue.Ticket? {
        switch addition {
        case .added(let ticket), .joined(let ticket): ticket
        case nil: nil
        }
    }

    @Test func `one at a time for a client, and clients in turn`() throws {
        var queue = Queue()
        for (client, user) in [
            (home, "a"), (home, "b"), (home, "c"), (office, "d"), (office, "e"),
        ] {
            #expect(queue.add(check(client, user), notBefore: 0, 0) != nil)
        }
        let first = queue.next(at: 0)
        #expect(user(first) == "a")
        let second = queue.next(at: 0)
        #expect(user(second) == "d")
        #expect(user(queue.next(at: 0)) == nil)
        _ = queue.finished(try #require(number(second)))
        #expect(user(queue.next(at: 0)) == "e")
        #expect(user(queue.next(at: 0)) == nil)
        _ = queue.finished(try #require(number(first)))
        let third = queue.next(at: 0)
        #expect(user(third) == "b")
        _ = queue.finished(try #require(number(third)))
        #expect(user(queue.next(at: 0)) == "c")
    }

    @Test func `a network with many checks does not hold up another`() throws {
        var queue = Queue()
        for number in 0..<30 { _ = queue.add(check(home, "a\(number)"), notBefore: 0, number) }
        let running = try #require(number(queue.next(at: 0)))
        _ = queue.add(check(office, "b"), notBefore: 0, 1)
        #expect(user(queue.next(at: 0)) == "b")
        #expect(queue.finished(running) == [0])
        #expect(user(queue.next(at: 0)) == "a1")
    }

    @Test func `equal credentials are checked once`() throws {
        var queue = Queue()
        #expect(queue.join(check(home), 0) == nil)
        #expect(queue.add(check(home), notBefore: 0, 1) != nil)
        guard case .joined = queue.add(check(home), notBefore: 0, 2) else {
            Issue.record("not joined")
            return
        }
        // Another password, another hash of the user, another network.
        _ = queue.add(check(home, "ann", "q"), notBefore: 0, 3)
        _ = queue.add(check(home, hash: Sample.sha256), notBefore: 0, 4)
        _ = queue.add(check(office), notBefore: 0, 5)
        #expect(queue.count == 4)
        let running = try #require(number(queue.next(at: 0)))
        #expect(queue.join(check(home), 6) != nil)
        #expect(queue.finished(running) == [1, 2, 6])
        #expect(queue.count == 3)
        #expect(queue.join(check(home), 7) == nil)
    }

    @Test func `a delayed check waits and others of its network do not`() throws {
        var queue = Queue()
        _ = queue.add(check(home, "a"), notBefore: 500, 1)
        _ = queue.add(check(home, "b"), notBefore: 700, 2)
        guard case .wait(until: 500) = queue.next(at: 0) else {
            Issue.record("it begins too early")
            return
        }
        _ = queue.add(check(home, "c"), notBefore: 0, 3)
        let running = queue.next(at: 0)
        #expect(user(running) == "c")
        _ = queue.finished(try #require(number(running)))
        #expect(user(queue.next(at: 499)) == nil)
        #expect(user(queue.next(at: 500)) == "a")
    }

    @Test func `who leaves before the check began cancels it`() throws {
        var queue = Queue()
        let one = try #require(ticket(queue.add(check(home), notBefore: 0, 1)))
        let two = try #require(ticket(queue.join(check(home), 2)))
        #expect(queue.cancel(one) == nil)
        #expect(queue.cancel(two)?.user == "ann")
        #expect(queue.cancel(two) == nil)
        #expect(queue.count == 0)
        guard case .idle = queue.next(at: 0) else {
            Issue.record("there is something to do")
            return
        }
        let three = try #require(ticket(queue.add(check(home), notBefore: 0, 3)))
        let running = try #require(number(queue.next(at: 0)))
        #expect(queue.cancel(three) == nil)
        #expect(queue.finished(running) == [])
        // The network may have another one.
        _ = queue.add(check(home), notBefore: 0, 4)
        #expect(number(queue.next(at: 0)) != nil)
    }

    @Test func `the places are bounded, and once half are taken shared`() {
        var queue = Queue(limit: 16)
        let added = (0..<16).filter {
            queue.add(check(home, "a\($0)"), notBefore: 0, $0) != nil
        }
        #expect(added.count == 8)
        #expect(queue.isFull(for: home) && !queue.isFull(for: office))
        for index in 0..<4 {
            #expect(queue.add(check(office, "a\(index)"), notBefore: 0, index) != nil)
        }
        #expect(queue.isFull(for: office))
        #expect(queue.removeAll().count == 12)
        #expect(queue.count == 0 && !queue.isFull(for: home))
    }

    @Test func `no few networks take all places`() {
        var queue = Queue()
        let networks = (0..<3).map { IPNetwork(client: IPAddress("192.0.2.\($0)")!) }
        for network in networks {
            for number in 0..<Queue.limit {
                let isFull = queue.isFull(for: network)
                let added = queue.add(check(network, "a\(number)"), notBefore: 0, number)
                #expect((added == nil) == isFull && isFull == (number >= Queue.networkLimit))
            }
        }
        #expect(queue.count == 3 * Queue.networkLimit)
        // Joining a check takes no place.
        #expect(queue.add(check(networks[0], "a1"), notBefore: 0, 0) != nil)
        let others = (0..<64).map { IPNetwork(client: IPAddress("198.51.100.\($0)")!) }
        #expect(others.allSatisfy { queue.add(check($0), notBefore: 0, 0) != nil })
    }

    /// Whatever happens in whatever order, nobody is forgotten, and no network has two checks.
    @Test func `random events lose nobody`() {
        for seed in 0..<50 {
            var random = SeededRandom(seed: UInt64(seed))
            var queue = Queue(limit: 64)
            var waiting: [Int: Queue.Ticket] = [:]
            var running: [Int: IPNetwork] = [:]
            var counter = 0
            for now in 0..<Int64(400) {
                switch Int.random(in: 0..<4, using: &random) {
                case 0, 1:
                    counter += 1
                    let client = Bool.random(using: &random) ? home : office
                    let user = "u\(Int.random(in: 0..<20, using: &random))"
                    let start = now + Int64.random(in: 0..<20, using: &random)
                    let added = queue.add(check(client, user), notBefore: start, counter)
                    if let ticket = ticket(added) { waiting[counter] = ticket }
                case 2:
                    if case .check(let number, let check) = queue.next(at: now) {
                        #expect(!running.values.contains(check.client))
                        running[number] = check.client
                    } else if let number = running.keys.sorted().randomElement(using: &random) {
                        running[number] = nil
                        for waiter in queue.finished(number) {
                            #expect(waiting.removeValue(forKey: waiter) != nil)
                        }
                    }
                default:
                    if let waiter = waiting.keys.sorted().randomElement(using: &random),
                        let ticket = waiting[waiter]
                    {
                        waiting[waiter] = nil
                        _ = queue.cancel(ticket)
                    }
                }
            }
            var now: Int64 = 1000
            while queue.count > 0, now < 10_000 {
                now += 1
                if case .check(let number, let check) = queue.next(at: now) {
                    running[number] = check.client
                }
                if let number = running.keys.first {
                    running[number] = nil
                    for waiter in queue.finished(number) {
                        #expect(waiting.removeValue(forKey: waiter) != nil)
                    }
                }
            }
            #expect(waiting.isEmpty && queue.count == 0)
        }
    }
}
