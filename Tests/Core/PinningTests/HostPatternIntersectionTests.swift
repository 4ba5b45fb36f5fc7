import Testing

@testable import Trust

@Suite("The hosts of two patterns")
struct HostPatternIntersectionTests {
    private static let texts = [
        "example.com", "a.example.com", "b.a.example.com", "*.example.com", "*.a.example.com",
        "**.example.com", "**.a.example.com", "**.b.a.example.com", "other.com", "**.com",
        "*.com", "192.0.2.1", "[2001:db8::1]:443", "2001:db8::1", "example.com:443",
        "a.example.com:8443", "*.example.com:443", "**.a.example.com:443", "**.example.com:8443",
        "xexample.com", "**.xexample.com",
    ]

    private static let hosts = [
        "example.com", "a.example.com", "b.a.example.com", "c.b.a.example.com", "x.example.com",
        "y.x.example.com", "other.com", "x.other.com", "com", "192.0.2.1", "2001:db8::1",
        "xexample.com", "a.xexample.com",
    ]

    private static func patterns() throws -> [HostPattern] {
        try texts.map { try HostPattern($0) } + [.everything]
    }

    @Test func `are those that both match, whatever the order`() throws {
        var found = 0
        for one in try Self.patterns() {
            for other in try Self.patterns() {
                let common = one.intersection(other)
                if common != nil { found += 1 }
                for host in Self.hosts {
                    for port in [80, 443, 8443] as [UInt16] {
                        let both =
                            one.matches(host: host, port: port)
                            && other.matches(host: host, port: port)
                        let isCommon = common?.matches(host: host, port: port) ?? false
                        #expect(isCommon == both, "\(one) and \(other): \(host):\(port)")
                    }
                }
            }
        }
        #expect(found > 100)
    }
}
