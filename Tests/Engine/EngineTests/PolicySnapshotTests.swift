import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Testing
import Trust

@testable import PinfoldEngine

private let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
private let otherPin = "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/// A host with a pinset, as text.
private let pinned = """
    hosts:
      - match: [api.example.com]
        pinsets: [payments]
      - match: [plain.example.com]
    pinsets:
      payments:
        mode: publicKey
        pins: ["\(pin)"]
    """

extension PolicySnapshot {
    /// Of the pinned host, of the one without pins, of all others.
    fileprivate var allFingerprints: [TrustFingerprint] {
        [
            fingerprint(entryIndex: 0, isFixed: false), fingerprint(entryIndex: 1, isFixed: false),
            fingerprint(entryIndex: nil, isFixed: false),
        ]
    }
}

/// The pinned configuration with one thing changed.
private func changed(_ change: (inout ConfigurationSnapshot) -> Void) throws -> [TrustFingerprint] {
    var configuration = try testConfiguration(pinned)
    change(&configuration)
    return try testPolicy(configuration).allFingerprints
}

/// One part of a pinset that is changed.
private enum PinsetChange: CaseIterable {
    case mode, morePins, noPins, allowInvalidCertificates, validatesDomainName, anchors, name

    func apply(to pinset: inout Pinset) {
        switch self {
        case .mode: pinset.mode = .none
        case .morePins: pinset.pins += pinset.pins
        case .noPins: pinset.pins = []
        case .allowInvalidCertificates: pinset.allowInvalidCertificates = true
        case .validatesDomainName: pinset.validatesDomainName = false
        case .anchors: pinset.anchors = [TestRoots.one]
        case .name: pinset.name = "others"
        }
    }
}

@Suite("The fingerprint of trust")
struct PolicyFingerprintTests {
    @Test func `equal trust has equal fingerprints whatever its generation`() throws {
        let first = try testPolicy(try testConfiguration(pinned), generation: 1)
        let second = try testPolicy(try testConfiguration(pinned), generation: 99)
        #expect(first.allFingerprints == second.allFingerprints)
        #expect(first.generation == 1 && second.generation == 99)
    }

    @Test func `the same trust of one host and of all hosts has one fingerprint`() throws {
        let policy = try testPolicy(pinned)
        let ofAll = policy.fingerprint(entryIndex: nil, isFixed: false)
        #expect(policy.fingerprint(entryIndex: 1, isFixed: false) == ofAll)
        #expect(policy.fingerprint(entryIndex: 0, isFixed: false) != ofAll)
    }

    @Test func `only what loosens a pinset in its life counts`() throws {
        func fingerprint(_ keys: String) throws -> TrustFingerprint {
            let text = """
                hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]
                pinsets: { p: { mode: none\(keys) } }
                """
            return try testPolicy(text).fingerprint(entryIndex: 0, isFixed: false)
        }
        let enforced = try fingerprint("")
        #expect(try fingerprint(", expires: 2999-01-01") == enforced)
        #expect(try fingerprint(", expires: 2999-01-01, afterExpiry: refuse") == enforced)
        #expect(try fingerprint(", afterExpiry: report") == enforced)
        let reporting = try fingerprint(", enforce: false")
        #expect(reporting != enforced)
        #expect(try fingerprint(", enforce: false, expires: 2999-01-01") == reporting)
        let later = try fingerprint(", expires: 2999-01-01, afterExpiry: report")
        #expect(later != enforced && later != reporting)
        #expect(try fingerprint(", expires: 2999-01-02, afterExpiry: report") != later)
    }

    @Test func `a fingerprint is the same in every process`() throws {
        // Stored responses are used by it after a restart: it must not come from a seeded hash.
        var configuration = try testConfiguration()
        configuration.tls = UpstreamTLS(minimum: .tls12, roots: [.system])
        func number(_ value: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, value] }
        var form = Array("pinfold trust 6".utf8)
        // A reverse listener's upstream: no rules of access.
        form.append(0)
        // The version, and that no profile is written down.
        form += number(3) + Array("1.2".utf8) + number(0)
        // One source of roots, the system's; no client certificate, no lists of suites.
        form += number(1) + [0] + number(0) + number(0) + number(0)
        // No OCSP response is required, and there are no CRLs.
        form += number(7) + Array("ignored".utf8) + number(0)
        // No pinsets; no fields in the cache's key.
        form += number(0) + number(0)
        let hashed = SHA256Digest(hashing: form.span)
        let expected = try #require(hashed)
        let policy = try testPolicy(configuration)
        #expect(policy.fingerprint(entryIndex: nil, isFixed: true).digest == expected)
        #expect(
            policy.fingerprint(entryIndex: nil, isFixed: true).prefix
                == expected.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    @Test func `all that decides which timestamps count is in it, and no more`() throws {
        func digest(_ byte: UInt8) -> SHA256Digest? {
            let bytes = [UInt8](repeating: byte, count: 32)
            return SHA256Digest(bytes.span)
        }
        let digests = [try #require(digest(1)), try #require(digest(2))]
        func log(
            _ index: Int, _ state: TransparencyLog.State? = .usable, since: Int64 = 0,
            expiries: Range<Int64>? = nil, name: String = "log"
        ) -> TransparencyLog {
            TransparencyLog(
                name: name, id: digests[index], key: [1], state: state, stateSince: since,
                expiries: expiries)
        }
        func fingerprint(
            _ minimum: Int, _ logs: [TransparencyLog]?, timestamp: Int64? = 1, path: String = "/a"
        ) throws -> TrustFingerprint {
            var configuration = try testConfiguration(pinned)
            configuration.tls.transparency.minimumSCTs = minimum
            configuration.tls.transparency.list = logs.map {
                LogListFile(path: path, list: TransparencyLogList(timestamp: timestamp, logs: $0))
            }
            return try testPolicy(configuration).fingerprint(entryIndex: nil, isFixed: false)
        }
        let different = try [
            fingerprint(0, nil), fingerprint(1, [log(0)]), fingerprint(2, [log(0)]),
            fingerprint(1, [log(1)]), fingerprint(1, [log(0), log(1)]),
            fingerprint(1, [log(0, .retired)]), fingerprint(1, []),
            fingerprint(1, [log(0, .retired, since: 5)]),
            fingerprint(1, [log(0, expiries: 0..<1)]), fingerprint(1, [log(0, expiries: 0..<2)]),
            fingerprint(1, [log(0, expiries: 1..<2)]),
        ]
        #expect(Set(different).count == different.count)
        let renamed = try fingerprint(1, [log(0, name: "other")], timestamp: 2, path: "/b")
        #expect(renamed == different[1])
        let alike = try [
            fingerprint(1, [log(0, .readonly)]), fingerprint(1, [log(0, .qualified, since: 7)]),
            fingerprint(1, [log(0), log(1, .pending)]), fingerprint(1, [log(1, nil), log(0)]),
            fingerprint(1, [log(1, .rejected, since: 9), log(0)]),
        ]
        for one in alike { #expect(one == different[1]) }
        #expect(try fingerprint(1, [log(1), log(0)]) == fingerprint(1, [log(0), log(1)]))
        // Nothing is asked, whatever the list.
        #expect(try fingerprint(0, [log(0)]) == different[0])
    }

    @Test func `certificates do not run into one another`() {
        // The same bytes in the same order, cut at another place; DER may hold 0xFF.
        let (one, two) = (TestRoots.one, TestRoots.two)
        let cuts: [[[UInt8]]] = [
            [one + two], [one, two], [one + [0xFF] + two], [one + [0xFF], two],
            [one, [0xFF] + two],
            [one, [0xFF], two], [one, [], two],
        ]
        var seen: Set<[UInt8]> = []
        for certificates in cuts {
            var form = TrustForm()
            form.add(
                UpstreamTLS(
                    minimum: .tls12, roots: [.file(path: "/r.pem", certificates: certificates)]))
            seen.insert(form.bytes)
        }
        var form = TrustForm()
        form.add(
            UpstreamTLS(
                minimum: .tls12, roots: [TestRoots.file("/a", one), TestRoots.file("/b", two)]))
        seen.insert(form.bytes)
        #expect(seen.count == cuts.count + 1)
    }

    @Test func `a pinset's name, pins and anchors do not run into one another`() {
        let pinsets = [
            Pinset(name: "ab", mode: .publicKey, pins: [.publicKey([1, 2])]),
            Pinset(name: "a", mode: .publicKey, pins: [.publicKey([1, 2])]),
            Pinset(name: "ab", mode: .publicKey, pins: [.publicKey([1]), .publicKey([2])]),
            Pinset(name: "ab", mode: .publicKey, pins: [.certificate([1, 2])]),
            Pinset(name: "ab", mode: .publicKey, pins: [], anchors: [[1, 2]]),
            Pinset(name: "ab", mode: .publicKey, pins: [.publicKey([2])], anchors: [[1]]),
        ]
        let forms = pinsets.map { pinset in
            var form = TrustForm()
            form.add(pinset)
            return form.bytes
        }
        #expect(Set(forms).count == forms.count)
    }

    @Test func `what is not trust does not change the fingerprint`() throws {
        let before = try changed { _ in }
        let after = try changed {
            $0.timeouts.firstByteMilliseconds += 1
            $0.listeners[0].address.port = 1
            $0.cache.isEnabled = false
            $0.tls.roots = [TestRoots.file("/elsewhere.pem", TestRoots.one)]
        }
        #expect(after == before)
    }

    @Test(arguments: PinsetChange.allCases)
    private func `a changed pinset changes the fingerprints of its hosts alone`(
        change: PinsetChange
    ) throws {
        let before = try changed { _ in }
        var configuration = try testConfiguration(pinned)
        change.apply(to: &configuration.pinsets[0].pinset)
        guard configuration.pinsets[0].pinset.configurationError == nil else {
            // No context can be made of it: there is no fingerprint to compare.
            #expect(throws: (any Error).self) { _ = try testPolicy(configuration) }
            return
        }
        let after = try testPolicy(configuration).allFingerprints
        #expect(after[0] != before[0])
        #expect(after[1...] == before[1...])
    }

    @Test func `other pins change the fingerprint`() throws {
        let before = try testPolicy(pinned).allFingerprints
        let text = pinned.replacing(pin, with: otherPin)
        let after = try testPolicy(text).allFingerprints
        #expect(after[0] != before[0])
        #expect(after[1...] == before[1...])
    }

    @Test func `another oldest version changes the fingerprint`() throws {
        let before = try changed { _ in }
        let after = try changed { $0.tls.minimum = .tls13 }
        #expect(after[2] != before[2])
        #expect(after[..<2] == before[..<2])
    }

    @Test func `another client certificate or other suites change the fingerprint`() throws {
        func form(_ change: (inout UpstreamTLS) -> Void) -> [UInt8] {
            var tls = UpstreamTLS()
            change(&tls)
            var form = TrustForm()
            form.add(tls)
            return form.bytes
        }
        func crls(of contents: [String], in lists: [[UInt8]] = [[1]]) -> [UInt8] {
            form {
                $0.crls = [
                    CRLFile(
                        path: "/l", lists: lists,
                        contents: contents.compactMap { SHA256Digest(hashing: Array($0.utf8).span) }
                    )
                ]
            }
        }
        func identity(_ chain: [UInt8], _ key: [UInt8] = [1], at path: String = "/c") -> [UInt8] {
            form {
                $0.clientIdentity = ClientIdentity(
                    path: path, chain: chain, keyPath: "/k", key: key)
            }
        }
        let forms = [
            form { _ in }, identity([1]), identity([2]), form { $0.ciphers = "HIGH" },
            form { $0.ciphers = "ALL" }, form { $0.cipherSuites = "HIGH" },
            crls(of: ["a"]), form { $0.ocspStapling = .required }, crls(of: ["a", "b"]),
        ]
        #expect(Set(forms).count == forms.count)
        // The contents of a list are known from when it was read: it is not read again.
        #expect(crls(of: ["a"], in: [[1]]) == crls(of: ["a"], in: [[2]]))
        // Who it is does not depend on where the files are.
        #expect(identity([1]) == identity([1], at: "/d"))
    }

    @Test func `other roots change the fingerprint`() throws {
        let before = try changed { _ in }
        let (one, two) = (TestRoots.one, TestRoots.two)
        let choices: [[ConfiguredRoots]] = [
            [TestRoots.file("/roots.pem", one)],
            [TestRoots.file("/roots.pem", two)],
            [TestRoots.file("/roots.pem", one, two)],
            [TestRoots.file("/roots.pem", two, one)],
            [.system, TestRoots.file("/roots.pem", one)],
            [.system],
        ]
        var seen: [TrustFingerprint] = []
        for roots in choices {
            let after = try changed { $0.tls.roots = roots }
            #expect(after[..<2] == before[..<2])
            seen.append(after[2])
        }
        #expect(Set(seen).count == choices.count)
        #expect(seen[0] == before[2])
    }
}

@Suite("A policy in force")
struct PolicySnapshotTests {
    @Test func `the first entry that matches applies`() throws {
        let policy = try testPolicy(
            """
            hosts:
              - match: ["*.example.com"]
                tunnel: refuse
              - match: [api.example.com]
            """)
        let target = policy.target(host: "api.example.com", port: 443, by: .tunnel)
        #expect(target.entryIndex == 0)
        #expect(target.refusal?.reason.token == "tunnel-refused")
        let other = policy.target(host: "example.com", port: 443, by: .tunnel)
        #expect(other.entryIndex == nil)
        #expect(other.refusal == nil)
    }

    @Test func `labels keep their index over reloads`() throws {
        let labels = RouteLabels()
        let first = try testPolicy(try testConfiguration(pinned), labels: labels)
        let text = """
            hosts:
              - match: [new.example.com]
              - match: [api.example.com]
            """
        let second = try testPolicy(try testConfiguration(text), generation: 2, labels: labels)
        #expect(first.defaultRoute == second.defaultRoute)
        #expect(first.route(entryIndex: nil) == first.defaultRoute)
        #expect(first.route(entryIndex: 0) == second.route(entryIndex: 1))
        #expect(labels.snapshot[second.route(entryIndex: 0)] == "new.example.com")
        #expect(labels.snapshot[first.route(entryIndex: 1)] == "plain.example.com")
    }

    @Test func `pinsets are labelled in the order of evaluation`() throws {
        let labels = RouteLabels()
        let text = """
            hosts:
              - match: [both.test]
                pinsets: [second, first]
            pinsets:
              first: { mode: publicKey, pins: ["\(pin)"] }
              second: { mode: publicKey, pins: ["\(otherPin)"] }
            """
        let policy = try testPolicy(try testConfiguration(text), labels: labels)
        let names = policy.pinsets(entryIndex: 0).map { labels.pinsetSnapshot[$0] }
        #expect(names == ["second", "first"])
        #expect(policy.pinsets(entryIndex: nil).isEmpty)
    }

    @Test func `reachability is the host's own, and counted by its entry`() throws {
        let policy = try testPolicy(
            """
            hosts:
              - match: [a.test, "*.b.test", "c.test:8080"]
            """)
        func host(_ name: String, _ port: UInt16 = 80) -> String? {
            policy.reachability(host: name, port: port)?.host
        }
        #expect(host("a.test") == "a.test")
        #expect(host("x.b.test") == "x.b.test")
        #expect(host("c.test", 8080) == "c.test:8080")
        #expect(host("c.test", 80) == nil)
        #expect(host("d.test") == nil)
    }

    @Test func `hosts without pins use the defaults of TLS, and each has its context`() throws {
        let policy = try testPolicy(pinned)
        #expect(policy.tls(entryIndex: 0) !== policy.tls(entryIndex: nil))
        #expect(policy.tls(entryIndex: nil) === policy.tls(entryIndex: nil))
    }

    @Test func `limits and options are the configuration's`() throws {
        let policy = try testPolicy(
            """
            limits: { headBytes: 8KiB, fields: 20 }
            cache: { maximumObject: 3MiB }
            """)
        #expect(policy.headLimits.headBytes == 8192)
        #expect(policy.headLimits.fields == 20)
        #expect(policy.cacheOptions.maximumObjectBytes == 3 << 20)
    }

    @Test(
        arguments: [
            ("timeouts: { idle: 5s }", true), ("limits: { upstreamPerHost: 3 }", true),
            ("cache: { enabled: false }", true), ("limits: { headBytes: 8KiB }", false),
            ("access: { connectPorts: any }", false), ("tls: { minimum: \"1.3\" }", false),
        ])
    func `connections go on where nothing they depend on has changed`(change: String, isKept: Bool)
        throws
    {
        let first = try testPolicy(pinned)
        let same = try testPolicy(try testConfiguration(pinned), generation: 2, following: first)
        #expect(same.generation == 2)
        #expect(same.trustGeneration == 1)
        let text = pinned + "\n" + change
        let next = try testPolicy(try testConfiguration(text), generation: 3, following: same)
        #expect(next.trustGeneration == (isKept ? 1 : 3))
        for entry in [nil, 0, 1] as [Int?] {
            #expect((next.tls(entryIndex: entry) === first.tls(entryIndex: entry)) == isKept)
        }
    }

    @Test func `other roots or pins end what was trusted`() throws {
        let first = try testPolicy(pinned)
        let roots = try testConfiguration(pinned, roots: [TestRoots.file("/r.pem", TestRoots.two)])
        #expect(try testPolicy(roots, generation: 2, following: first).trustGeneration == 2)
        let pins = try testConfiguration(pinned.replacing(pin, with: otherPin))
        #expect(try testPolicy(pins, generation: 2, following: first).trustGeneration == 2)
    }
}
