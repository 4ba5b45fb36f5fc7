import CLinux
import CSQLite
import HTTPCore
import PinObservation
import TestSupport
import Testing
import Trust

@testable import PinObserving

/// The file in which observed servers are kept.
@Suite("The file of observed servers")
struct ObservationFileTests {
    private let name = ObservedName(host: "api.example.com", port: 443)

    private func digest(_ number: UInt8) -> SHA256Digest {
        guard let digest = SHA256Digest([UInt8](repeating: number, count: 32).span) else {
            preconditionFailure("32 bytes are a digest")
        }
        return digest
    }

    private func sighting(_ number: UInt8, at time: Int64) -> Sighting {
        Sighting(
            name: name,
            leaf: ObservedCertificate(
                key: digest(number), fingerprint: digest(number), subject: "CN=\(number)",
                issuer: "CN=i", notAfter: 1000),
            paths: [[]], address: IPAddress("192.0.2.1"), time: time)
    }

    private func entry(_ numbers: UInt8...) -> ObservationTable.Entry {
        var host = ObservedHost(name: name, time: 100)
        for number in numbers { host.note(sighting(number, at: 100 + Int64(number))) }
        return ObservationTable.Entry(host: host, client: IPNetwork("10.0.0.0/24"))
    }

    private func withFile(_ body: (String) throws -> Void) throws {
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) { try body(folder.file("state/observed.sqlite")) }
    }

    private func problem(_ path: String) -> ObservationFileError? {
        do throws(ObservationFileError) {
            _ = try ObservationFile(creating: path)
            return nil
        } catch {
            return error
        }
    }

    @Test func `has what was written, for whoever opens it next`() throws {
        try withFile { path in
            let file = try ObservationFile(creating: path)
            try file.write([entry(1, 2)], removing: []) { $0 }
            let (entries, unreadable) = try ObservationFile(reading: path).hosts()
            #expect(entries.map(\.host) == [entry(1, 2).host])
            #expect(entries.first?.client == IPNetwork("10.0.0.0/24"))
            #expect(unreadable == 0)
            try file.write([], removing: [name]) { $0 }
            #expect(try ObservationFile(creating: path).hosts().entries.isEmpty)
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func `is merged where another process has written meanwhile`() throws {
        try withFile { path in
            let one = try ObservationFile(creating: path)
            let other = try ObservationFile(creating: path)
            _ = try one.hosts()
            _ = try other.hosts()
            var asked = 0
            func merge(_ number: UInt8) -> (ObservationTable.Entry) -> ObservationTable.Entry {
                { found in
                    asked += 1
                    var found = found
                    found.host.note(self.sighting(number, at: 100 + Int64(number)))
                    return found
                }
            }
            try one.write([entry(1)], removing: [], merging: merge(1))
            try other.write([entry(2)], removing: [], merging: merge(2))
            #expect(asked == 1)
            try one.write([entry(1, 3)], removing: [], merging: merge(3))
            #expect(asked == 2)
            try one.write([entry(1, 2, 3)], removing: [], merging: merge(4))
            #expect(asked == 2)
            let hosts = try one.hosts().entries.map(\.host)
            #expect(hosts.first?.chains.map(\.leaf.key) == [digest(1), digest(2), digest(3)])
        }
    }

    @Test func `is merged where another process wrote before this one's last write`() throws {
        try withFile { path in
            let second = ObservedName(host: "second.test", port: 443)
            func other(_ time: Int64) -> ObservationTable.Entry {
                ObservationTable.Entry(host: ObservedHost(name: second, time: time), client: nil)
            }
            let (one, two) = (
                try ObservationFile(creating: path), try ObservationFile(creating: path)
            )
            _ = try one.hosts()
            _ = try two.hosts()
            try one.write([entry(1)], removing: []) { $0 }
            try two.write([other(100)], removing: []) { $0 }
            var found: [ObservedHost] = []
            try two.write([entry(2)], removing: []) { there in
                found.append(there.host)
                return there
            }
            #expect(found == [entry(1).host])
            try two.write([other(200), entry(3)], removing: []) { _ in
                Issue.record("its own rows are known to it")
                return self.entry(3)
            }
        }
    }

    @Test func `that was deleted while it was open is known as such`() throws {
        try withFile { path in
            let file = try ObservationFile(creating: path)
            unlink(path)
            #expect(throws: ObservationFileError.moved(path: path)) {
                try file.write([entry(1)], removing: []) { $0 }
            }
        }
    }

    @Test func `is no loss where a process knows what another one has not recorded`() {
        var (one, other) = (entry(1, 3).host, entry(2, 3).host)
        one.merge(other)
        #expect(one.chains.map(\.leaf.key) == [digest(1), digest(2), digest(3)])
        #expect(one.chains.map(\.verified) == [1, 1, 1])
        #expect(one.firstSeen == 100 && one.lastSeen == 103)
        other.merge(one)
        #expect(other == one)
        for number: UInt8 in 4...60 { other.note(sighting(number, at: 100 + Int64(number))) }
        one.merge(other)
        #expect(one.chains.count == ObservedHost.chainsLimit)
    }

    @Test func `that is damaged is known as such, and set aside`() throws {
        try withFile { path in
            #expect(problem(path) == nil)
            let stream = try #require(fopen(path, "w"))
            for _ in 0..<1000 { fputs("rubbish", stream) }
            fclose(stream)
            #expect(problem(path)?.isDamage == true)
            #expect(try ObservationFile.setAside(path) == path + ".damaged")
            #expect(problem(path) == nil)
        }
    }

    @Test func `of a newer program is left alone`() throws {
        try withFile { path in
            #expect(problem(path) == nil)
            try ObservationDatabase(path, mode: SQLITE_OPEN_READWRITE)
                .execute("PRAGMA user_version = 2")
            #expect(problem(path) == .newer(path: path, version: 2))
        }
    }

    @Test func `has rows that cannot be read counted`() throws {
        try withFile { path in
            let file = try ObservationFile(creating: path)
            try file.write([entry(1)], removing: []) { $0 }
            try ObservationDatabase(path, mode: SQLITE_OPEN_READWRITE)
                .execute("INSERT INTO observed VALUES ('x', 1, NULL, 0, '{}')")
            let (entries, unreadable) = try file.hosts()
            #expect(entries.count == 1 && unreadable == 1)
        }
    }

    @Test func `that does not exist is not created to be read`() throws {
        try withFile { path in
            #expect(throws: ObservationFileError.missing(path: path)) {
                _ = try ObservationFile(reading: path)
            }
            #expect(access(path, F_OK) != 0)
        }
    }
}
