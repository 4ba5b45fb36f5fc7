import CLinux
import Documents
import Files
import Gateway
import HTTPCore
import PinObservation
import PinObserving
import PinfoldEngine
import Trust

/// The keys that servers were seen to have, from a file in one of three forms: the gateway's record
/// (`observed-pins.sqlite`), what `pinfold pin observed --json` prints, or
/// `{"api.example.com": [{"spki": ["BASE64", …]}]}`, with the SHA-256 of each key of the verified
/// chain, the server's own first. There, a host may be followed by a port, which then is the only
/// one.
struct ObservedServers {
    /// A chain, and when it was seen.
    private struct Seen {
        var keys: ObservedKeys
        /// Seconds since 1970; of a file that does not say, always.
        var first = Int64.min
        var last = Int64.max
    }

    private var servers: [String: [Seen]] = [:]

    /// How many hosts, or hosts with a port, there are.
    var count: Int { servers.count }

    /// The chains of a host at a time: those that it showed then, or else the last that it showed
    /// before, or else the first. `nil` if none was seen.
    func chains(of host: String, port: UInt16, at seconds: Int64) -> [ObservedKeys]? {
        guard let seen = servers[HostText.text(host, port: port)] ?? servers[host] else {
            return nil
        }
        let then = seen.filter { $0.first <= seconds && seconds <= $0.last }
        if !then.isEmpty { return then.map(\.keys) }
        let before = seen.filter { $0.last < seconds }.max { $0.last < $1.last }
        let nearest = before ?? seen.min { $0.first < $1.first }
        return nearest.map { [$0.keys] }
    }

    /// - Parameter path: of a file in any of the forms.
    init(file path: String) throws {
        if Self.isDatabase(path) {
            try self.init(record: path)
        } else {
            try self.init(json: CommandFiles.read(path), name: path)
        }
    }

    /// Whether a file begins as every database does (SQLite's file format, §1.3).
    private static func isDatabase(_ path: String) -> Bool {
        let descriptor = uninterrupted {
            open_with_mode(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0)
        }
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var begin = [UInt8](repeating: 0, count: 16)
        let count = begin.withUnsafeMutableBytes { begin in
            uninterrupted { read(descriptor, begin.baseAddress, begin.count) }
        }
        return count == begin.count && begin.elementsEqual("SQLite format 3\0".utf8)
    }

    private init(record path: String) throws(CommandError) {
        do throws(ObservationFileError) {
            let (entries, unreadable) = try ObservationFile(reading: path).hosts()
            if unreadable > 0 { writeWarning("\(path): \(unreadable) rows cannot be read") }
            for entry in entries { add(entry.host) }
        } catch {
            throw CommandError("\(error)")
        }
    }

    /// - Parameter name: the file's, for errors.
    init(json bytes: [UInt8], name: String) throws(CommandError) {
        if let hosts = Self.export(bytes) {
            for host in hosts { add(host) }
            return
        }
        func wrong(_ place: String, _ problem: String) -> CommandError {
            CommandError(
                "\(name): \(place)\(problem); expected {\"host\": [{\"spki\": [\"BASE64\"]}]}, "
                    + "what pinfold pin observed --json prints, or the gateway's record")
        }
        guard let value = try? JSONDocument.value(of: bytes) else { throw wrong("", "is not JSON") }
        guard case .dictionary(let hosts) = value else { throw wrong("", "is no object") }
        for member in hosts.members {
            let (host, list) = (member.key, member.value)
            guard case .array(let chains) = list else { throw wrong("\(host): ", "is no list") }
            for chain in chains {
                guard case .array(let keys)? = chain["spki"] else {
                    throw wrong("\(host): ", "has no list spki")
                }
                var path: [ObservedKeys.Certificate] = []
                for key in keys {
                    guard let text = key.text,
                        let bytes = Base64.decode(Array(text.utf8)[...]),
                        let digest = SHA256Digest(bytes.span)
                    else { throw wrong("\(host): ", "spki has what is no SHA-256 in base64") }
                    path.append(ObservedKeys.Certificate(key: digest))
                }
                guard let observed = ObservedKeys([path]) else {
                    throw wrong("\(host): ", "spki is empty")
                }
                servers[host.lowercasedASCII, default: []].append(Seen(keys: observed))
            }
        }
    }

    /// The hosts of an export, one on each line; `nil` if it is something else.
    private static func export(_ bytes: [UInt8]) -> [ObservedHost]? {
        var hosts: [ObservedHost] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let host = ObservedHost(json: Array(line)) else { return nil }
            hosts.append(host)
        }
        return hosts.isEmpty ? nil : hosts
    }

    private mutating func add(_ host: ObservedHost) {
        let name = HostText.text(host.name.host, port: host.name.port)
        for chain in host.chains {
            func certificate(_ one: ObservedCertificate) -> ObservedKeys.Certificate {
                ObservedKeys.Certificate(key: one.key, fingerprint: one.fingerprint)
            }
            let paths = chain.paths.map { ([chain.leaf] + $0.issuers).map(certificate) }
            guard let keys = ObservedKeys(paths) else { continue }
            servers[name, default: []].append(
                Seen(keys: keys, first: chain.firstSeen, last: chain.lastSeen))
        }
    }
}
