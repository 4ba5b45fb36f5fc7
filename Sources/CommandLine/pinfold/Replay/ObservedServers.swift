import Documents
import Gateway
import HTTPCore
import PinfoldEngine
import Trust

/// The keys that servers were seen to have, from a file:
/// `{"api.example.com": [{"spki": ["BASE64", …]}]}`, with the SHA-256 of each key of the verified
/// chain, the server's own first. A host may be followed by a port, which then is the only one.
struct ObservedServers {
    private var chains: [String: [ObservedKeys]] = [:]

    var count: Int { chains.count }

    /// The chains of a host; `nil` if none was seen.
    func chains(of host: String, port: UInt16) -> [ObservedKeys]? {
        chains[HostText.text(host, port: port)] ?? chains[host]
    }

    /// - Parameter name: the file's, for errors.
    init(json bytes: [UInt8], name: String) throws(CommandError) {
        func wrong(_ place: String, _ problem: String) -> CommandError {
            CommandError(
                "\(name): \(place)\(problem); expected {\"host\": [{\"spki\": [\"BASE64\"]}]}")
        }
        guard let value = try? JSONDocument.value(of: bytes) else { throw wrong("", "is not JSON") }
        guard case .dictionary(let hosts) = value else { throw wrong("", "is no object") }
        for member in hosts.members {
            let (host, list) = (member.key, member.value)
            guard case .array(let servers) = list else { throw wrong("\(host): ", "is no list") }
            for server in servers {
                guard case .array(let keys)? = server["spki"] else {
                    throw wrong("\(host): ", "has no list spki")
                }
                var digests: [SHA256Digest] = []
                for key in keys {
                    guard let text = key.text,
                        let bytes = Base64.decode(Array(text.utf8)[...]),
                        let digest = SHA256Digest(bytes.span)
                    else { throw wrong("\(host): ", "spki has what is no SHA-256 in base64") }
                    digests.append(digest)
                }
                guard let observed = ObservedKeys(digests) else {
                    throw wrong("\(host): ", "spki is empty")
                }
                chains[host.lowercasedASCII, default: []].append(observed)
            }
        }
    }
}
