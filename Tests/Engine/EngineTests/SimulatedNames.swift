import HTTPCore
import TestSupport

/// An address of the simulation, and the policies under which it may be connected to: a table, so
/// that the rules under test are not compared with themselves.
struct SimulatedAddress {
    let address: IPAddress
    /// By the trust of the policy (`SimulationPolicies`).
    let isAllowed: [Bool]

    private init(_ text: String, _ isAllowed: [Bool]) {
        guard let address = IPAddress(text) else { fatalError(text) }
        self.address = address
        self.isAllowed = isAllowed
    }

    /// Of the networks that `access.destinations.allow` names.
    static let good = [
        "203.0.113.1", "203.0.113.2", "203.0.113.3", "2001:db8::1", "2001:db8::2",
        "::ffff:203.0.113.4",
    ].map { SimulatedAddress($0, [true, true]) }

    /// Denied by every second policy.
    static let doubtful = ["203.0.113.129", "203.0.113.200", "::ffff:203.0.113.130"].map {
        SimulatedAddress($0, [true, false])
    }

    /// Never allowed: not global, and not named.
    static let bad = [
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0",
    ].map { SimulatedAddress($0, [false, false]) }

    /// The gateway's own listener, at the port of tunnels.
    static let own = SimulatedAddress("203.0.113.77", [true, true])
}

/// A name, and what it may resolve to.
struct SimulatedName {
    let host: String
    let addresses: [SimulatedAddress]
    /// The name itself is denied.
    var isDenied = false
    /// It needs no resolver.
    var isLiteral = false

    static let deniedHost = "denied.test"

    /// A name of a server that is usually reached.
    init(_ host: String, _ random: inout SeededRandom) {
        self.host = host
        var addresses: [SimulatedAddress] = []
        for _ in 0...random.below(3) {
            switch random.below(20) {
            case 0..<14: addresses.append(random.pick(SimulatedAddress.good))
            case 14..<17: addresses.append(random.pick(SimulatedAddress.doubtful))
            default: addresses.append(random.pick(SimulatedAddress.bad))
            }
        }
        self.addresses = addresses
    }

    private init(_ host: String, _ addresses: [SimulatedAddress], isLiteral: Bool) {
        self.host = host
        self.addresses = addresses
        self.isLiteral = isLiteral
    }

    /// What CONNECT names.
    static func destination(_ index: Int, _ random: inout SeededRandom) -> SimulatedName {
        switch random.below(12) {
        case 0:
            var name = SimulatedName(deniedHost, SimulatedAddress.good, isLiteral: false)
            name.isDenied = true
            return name
        case 1: return SimulatedName("own.test", [SimulatedAddress.own], isLiteral: false)
        case 2:
            let loopback = SimulatedAddress.bad.filter { $0.address.scope == .loopback }
            return SimulatedName("localhost", loopback, isLiteral: true)
        case 3, 4:
            let address = random.pick(
                SimulatedAddress.good + SimulatedAddress.doubtful + SimulatedAddress.bad
                    + [SimulatedAddress.own])
            return SimulatedName("\(address.address)", [address], isLiteral: true)
        default: return SimulatedName("tunnel\(index).test", &random)
        }
    }

    /// As the target of CONNECT has it.
    var authorityHost: String { host.utf8.contains(0x3A) ? "[\(host)]" : host }

    /// Whether a connection to this address may be made for it.
    func allows(_ address: IPAddress, port: UInt16, trust: Int) -> Bool {
        guard !isDenied, !isOwn(address, port) else { return false }
        return addresses.contains { $0.address == address && $0.isAllowed[trust] }
    }

    private func isOwn(_ address: IPAddress, _ port: UInt16) -> Bool {
        address == SimulatedAddress.own.address && port == SimulatedTarget.port
    }

    /// Whether something it may resolve to must be refused.
    func hasRefused(port: UInt16, trust: Int) -> Bool {
        isDenied || addresses.contains { !$0.isAllowed[trust] || isOwn($0.address, port) }
    }
}

/// What a CONNECT names.
struct SimulatedTarget {
    let name: SimulatedName
    let port: UInt16

    /// The port that CONNECT may name.
    static let port: UInt16 = 443

    var text: String { "\(name.authorityHost):\(port)" }
}
