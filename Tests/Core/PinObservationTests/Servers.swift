import HTTPCore
import Trust

@testable import PinObservation

// Certificates and servers that tests make up. Nothing is signed: a certificate is its digests.

/// A digest that is different for each name.
func digest(_ name: String) -> SHA256Digest {
    var bytes = [UInt8](repeating: 0, count: SHA256Digest.byteCount)
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    for (index, byte) in (Array(name.utf8) + bytes).enumerated() {
        state = (state ^ UInt64(byte) &+ UInt64(index)) &* 0x100_0000_01b3
        bytes[index % bytes.count] ^= UInt8(truncatingIfNeeded: state >> 24)
    }
    return SHA256Digest(bytes.span) ?? digest(name + ".")
}

func certificate(
    _ name: String, key: String? = nil, issuer: String = "issuer", notAfter: Int64 = 4_000_000_000
) -> ObservedCertificate {
    ObservedCertificate(
        key: digest("key " + (key ?? name)), fingerprint: digest("certificate " + name),
        subject: "CN=" + name, issuer: "CN=" + issuer, notAfter: notAfter)
}

func key(_ name: String) -> SHA256Digest { digest("key " + name) }

let day: Int64 = 86_400
let name = ObservedName(host: "api.example.com", port: 443)
let address = IPAddress("192.0.2.1")
let otherAddress = IPAddress("192.0.2.2")

/// A sighting of a leaf below issuers, by their names.
func sighting(
    _ leaf: String, key: String? = nil, below issuers: [[String]] = [["intermediate", "root"]],
    at time: Int64, from address: IPAddress? = address, isReported: Bool = false,
    of name: ObservedName = name, notAfter: Int64 = 4_000_000_000
) -> Sighting {
    Sighting(
        name: name,
        leaf: certificate(
            leaf, key: key, issuer: issuers.first?.first ?? leaf, notAfter: notAfter),
        paths: issuers.map { $0.map { certificate($0) } }, address: address,
        isReported: isReported, time: time)
}

/// A host that was seen each day of these periods, in days.
func host(
    _ periods: (leaf: String, key: String?, issuers: [[String]], days: ClosedRange<Int64>)...
) -> ObservedHost {
    var host = ObservedHost(name: name, time: (periods.map(\.days.lowerBound).min() ?? 0) * day)
    let all = periods.flatMap { period in
        period.days.map {
            sighting(period.leaf, key: period.key, below: period.issuers, at: $0 * day)
        }
    }
    for one in all.sorted(by: { $0.time < $1.time }) { host.note(one) }
    return host
}
