import AccessPolicy
import PinfoldConfiguration

/// `rate` of an element of `access.rules`.
extension AccessRule {
    static var rateKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "rate", \.rate, table: RateLimits.table, empty: RateLimits())
        let read = key.read
        key.read = { reader, section, rule in
            read(reader, section, &rule)
            guard let field = section?["rate"], let rate = rule.rate else { return }
            reader.check(rate, of: rule, field)
        }
        return key
    }
}

extension RateLimits {
    /// The largest size and speed.
    private static let largest = 1 << 50

    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("per", \.basis),
            ConfigurationKey(
                "requests", \.requests, byDefault: "unlimited",
                reading: { $1.requestRate() }, text: { $0?.text }),
            ConfigurationKey(
                "burst", \.burst, byDefault: "the requests of a second, at least 1",
                reading: { $1.integer(in: 1...1_000_000) }, text: { $0?.description }),
            ConfigurationKey(
                "exchanges", \.exchanges, byDefault: "unlimited",
                reading: { $1.integer(in: 1...1_000_000) }, text: { $0?.description }),
            speed("down", \.down),
            speed("up", \.up),
            ConfigurationKey(
                "day", \.day, byDefault: "unlimited",
                reading: { $1.bytes(in: 1...largest) }, text: { $0.map(Quantity.text(bytes:)) }),
            .choice("over", \.excess),
        ])
    }

    private static func speed(
        _ name: String, _ place: WritableKeyPath<Self, Int?>
    ) -> ConfigurationKey<Self> {
        ConfigurationKey(
            name, place, byDefault: "unlimited", reading: { $1.speed(atMost: largest) },
            text: { $0.map { Quantity.text(bytes: $0) + "/s" } })
    }

    /// The limits as in a configuration.
    package var summary: String { Self.table.flow(self) ?? "{}" }
}

extension RequestRate {
    fileprivate var text: String { "\(count)/\(unit.rawValue)" }

    /// Parses a whole number of requests and a unit of time, such as `50/s`.
    fileprivate init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let unit = Unit(rawValue: String(parts[1])),
            !parts[0].isEmpty,
            parts[0].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let count = Int(parts[0]), 1...1_000_000_000 ~= count
        else { return nil }
        self.init(count: count, per: unit)
    }
}

extension Field {
    fileprivate func requestRate() -> RequestRate? {
        parsed(
            expected: "requests in a second, a minute, an hour or a day, such as 50/s, 300/m, "
                + "1000/h or 5000/d, from 1 to 1000000000",
            meant: { text in RequestRate(text + "/s").map { _ in text + "/s" } },
            RequestRate.init)
    }

    /// Bytes per second: `1MiB/s`.
    fileprivate func speed(atMost largest: Int) -> Int? {
        func speed(_ text: String) -> Int? {
            guard text.hasSuffix("/s"), let bytes = Quantity.bytes(String(text.dropLast(2))),
                1...largest ~= bytes
            else { return nil }
            return bytes
        }
        func meant(_ text: String) -> String? {
            let size = Quantity.bytes(text) != nil ? text : Quantity.meantBytes(text)
            return size.map { $0 + "/s" }
        }
        return parsed(
            expected: "bytes in a second, such as 256KiB/s or 1MB/s, from 1/s to "
                + "\(Quantity.text(bytes: largest))/s",
            meant: meant, speed)
    }
}

extension SnapshotReader {
    /// Reports limits that contradict their rule, or that limit nothing.
    fileprivate func check(_ rate: RateLimits, of rule: AccessRule, _ field: Field) {
        if case .deny = rule.action {
            field.fail("does not apply to action: deny", expected: "action: allow or report")
        }
        if rate.isEmpty {
            field.fail(
                "limits nothing", expected: "requests, exchanges, down, up or day")
        }
        if rate.burst != nil, rate.requests == nil {
            field.key("burst")?.fail("has no rate", expected: "requests as well, such as 50/s")
        }
        if rate.basis == .group, rule.groups.isEmpty {
            field.key("per")?.fail(
                "the rule names no groups", expected: "groups in the rule, or another word")
        }
        if field.key("over") != nil, rate.requests == nil, rate.exchanges == nil {
            field.key("over")?.warn(
                "has no effect: neither requests nor exchanges are limited; bytes are always "
                    + "slowed down, and the requests of a day that is used up refused")
        }
    }

    /// Warns of rates by user where nobody is asked who he is.
    func warnOfUnknownUsers(
        _ element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot
    ) {
        guard rule.rate?.basis == .user else { return }
        let asks = snapshot.listeners.contains { listener in
            !listener.authentication.isEmpty
                && (rule.listeners.isEmpty || rule.listeners.contains(listener.name))
        }
        guard !asks else { return }
        element.key("rate")?.key("per")?.warn(
            "counts by the client's network: no listener asks its clients who they are "
                + "(authentication)")
    }
}
