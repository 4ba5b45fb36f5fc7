import Testing

@Suite("Parents of a configuration")
struct ParentKeyTests {
    @Test(
        arguments: [
            // Where it listens, the parent, and whether that is known to be the same.
            ("127.0.0.1:3128", "127.0.0.1:3128", true), ("127.0.0.1:3128", "127.0.0.2:3128", false),
            ("127.0.0.1:3128", "127.0.0.1:3129", false), ("127.0.0.1:3128", "localhost:3128", true),
            ("127.0.0.1:3128", "a.localhost:3128", true),
            ("127.0.0.1:3128", "alocalhost:3128", false),
            ("127.0.0.1:3128", "[::ffff:127.0.0.1]:3128", true),
            ("127.0.0.1:3128", "[::1]:3128", false), ("127.0.0.1:3128", "0.0.0.0:3128", true),
            ("0.0.0.0:3128", "127.0.0.9:3128", true), ("0.0.0.0:3128", "localhost:3128", true),
            ("0.0.0.0:3128", "192.0.2.1:3128", false), ("0.0.0.0:3128", "[::1]:3128", false),
            ("[::1]:3128", "localhost:3128", true), ("[::]:3128", "[::1]:3128", true),
            ("192.0.2.1:3128", "192.0.2.1:3128", true), ("192.0.2.1:3128", "localhost:3128", false),
            ("127.0.0.1:0", "localhost:3128", false),
            // The administration's address.
            ("127.0.0.1:3128", "127.0.0.1:9090", true), ("127.0.0.1:3128", "localhost:9090", true),
        ])
    func `are no listener of the same configuration`(listener: String, parent: String, isOwn: Bool)
    {
        let found = errors(
            of: """
                listeners: [{ name: a, address: "\(listener)", kind: forward }]
                access: { clients: ["127.0.0.0/8"] }
                parents: { p: { url: "socks5h://\(parent)" } }
                ways: { parents: [p] }
                """)
        #expect(
            found.map { $0.contains("is a listener of this gateway") } == (isOwn ? [true] : []),
            "\(found)")
    }
}
