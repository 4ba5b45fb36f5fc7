import Clocks
import Testing

@testable import PinfoldClient

@Suite("The refresh of a credential")
struct CredentialRefreshTests {
    private typealias Refresh = CredentialRefresh<String>

    /// A step in words.
    private static func text(_ step: Refresh.Step) -> String {
        switch step {
        case .use(let credential): "use \(credential)"
        case .join: "join"
        case .begin(let credential, let number): "begin \(number) \(credential ?? "none")"
        case .refuse: "refuse"
        }
    }

    @Test func `begins once, and the others join`() {
        var refresh = Refresh("a", window: nil)
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "begin 1 a")
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "join")
        #expect(refresh.isRefreshing)
        #expect(refresh.finish(1, "b") == "b")
        #expect(!refresh.isRefreshing)
        #expect(refresh.revision == 1)
        // Whoever used the old one takes the new one.
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "use b")
        #expect(Self.text(refresh.step(insteadOf: 1, now: 0)) == "begin 2 b")
    }

    @Test func `that fails leaves the credential, and the next one begins again`() {
        var refresh = Refresh("a", window: nil)
        _ = refresh.step(insteadOf: 0, now: 0)
        #expect(refresh.finish(1, nil) == nil)
        #expect(refresh.credential == "a")
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "begin 2 a")
    }

    @Test func `without a credential begins with none`() {
        var refresh = Refresh(nil, window: nil)
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "begin 1 none")
        #expect(refresh.finish(1, "a") == "a")
    }

    @Test func `counts for nothing if the caller sets a credential meanwhile`() {
        var refresh = Refresh("a", window: nil)
        _ = refresh.step(insteadOf: 0, now: 0)
        refresh.set("own")
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "use own")
        #expect(refresh.finish(1, "b") == "own")
        #expect(refresh.credential == "own")
        // The same if it is removed.
        _ = refresh.step(insteadOf: 1, now: 0)
        refresh.set(nil)
        #expect(refresh.finish(2, "c") == nil)
        #expect(refresh.credential == nil)
    }

    @Test func `that is outdated does not end a later one`() {
        var refresh = Refresh("a", window: nil)
        _ = refresh.step(insteadOf: 0, now: 0)
        refresh.set("b")
        #expect(Self.text(refresh.step(insteadOf: 1, now: 0)) == "begin 2 b")
        #expect(refresh.finish(1, "late") == "b")
        #expect(refresh.isRefreshing)
        #expect(refresh.finish(2, "c") == "c")
    }

    @Test func `is refused beyond the window's maximum, until time has passed`() {
        var refresh = Refresh(
            "a", window: RefreshWindow(interval: .milliseconds(100), maximumAttempts: 2))
        #expect(Self.text(refresh.step(insteadOf: 0, now: 0)) == "begin 1 a")
        #expect(refresh.finish(1, nil) == nil)
        #expect(Self.text(refresh.step(insteadOf: 0, now: 50)) == "begin 2 a")
        #expect(Self.text(refresh.step(insteadOf: 0, now: 60)) == "join")
        #expect(refresh.finish(2, nil) == nil)
        #expect(Self.text(refresh.step(insteadOf: 0, now: 99)) == "refuse")
        // The first one is out of the window now.
        #expect(Self.text(refresh.step(insteadOf: 0, now: 100)) == "begin 3 a")
        #expect(refresh.finish(3, nil) == nil)
        #expect(Self.text(refresh.step(insteadOf: 0, now: 149)) == "refuse")
        #expect(Self.text(refresh.step(insteadOf: 0, now: 150)) == "begin 4 a")
    }

    @Test func `is due a minute before the expiry of a bearer token`() {
        let credential = BearerCredential(token: "t", expiresAt: 1000)
        for (now, isDue) in [(939, false), (940, true), (1000, true)] as [(Int64, Bool)] {
            #expect(credential.requiresRefresh(at: now) == isDue)
        }
        #expect(!BearerCredential(token: "t").requiresRefresh(at: .max))
        #expect(!BearerCredential(token: "t").isExpired(at: .max))
        #expect([999, 1000].map { credential.isExpired(at: $0) } == [false, true])
        #expect(!BearerCredential(token: "t", expiresAt: .min).requiresRefresh(at: 0))
    }

    @Test func `leaves at least half of the lifetime of a bearer token`() {
        for (lifetime, most) in [(0, 60), (1, 0), (60, 30), (119, 59), (121, 60), (3600, 60)] {
            // A second may begin in between.
            let earliest = Clock.wallSeconds()
            let credential = BearerCredential(token: "t", expiresAt: earliest + Int64(lifetime))
            let late = Clock.wallSeconds() - earliest
            let least = lifetime > 0 ? Int64(most) - late : 60
            #expect((least...max(60, Int64(most))).contains(credential.margin))
            if lifetime > 0, late < lifetime { #expect(credential.margin <= most) }
        }
    }
}
