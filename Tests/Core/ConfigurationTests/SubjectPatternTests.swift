import PinfoldConfiguration
import Testing

@Suite("Which subjects of certificates are meant")
struct SubjectPatternTests {
    @Test(
        arguments: [
            ("CN=a", "CN=a", true), ("CN=a", "CN=b", false), ("CN=a", "CN=a,O=x", false),
            ("CN=a", "cn=a", false), ("CN=*", "CN=", true), ("CN=*", "CN=anything", true),
            ("CN=*", "CN=a,O=x", false), ("CN=a*c*e", "CN=abcde", true),
            ("CN=a*c*e", "CN=abcd", false), ("CN=*-17", "CN=device-17", true),
            ("CN=*-17", "CN=device-17-18", false), ("CN=a,O=x", "CN=a,O=x", true),
            ("CN=a, O=x", "CN=a,O=x", true), ("CN=a,O=x", "O=x,CN=a", false),
            ("**", "CN=a", true), ("**", "CN=a,O=x", true), ("CN=a,**", "CN=a", true),
            ("CN=a,**", "CN=a,OU=b,O=x", true), ("CN=a,**", "CN=b,O=x", false),
            ("**,O=x", "CN=a,OU=b,O=x", true), ("**,O=x", "CN=a,O=y", false),
            ("CN=a,**,O=x", "CN=a,O=x", true), ("**,OU=b,**", "CN=a,OU=b,O=x", true),
        ])
    func `a pattern matches the whole subject`(pattern: String, subject: String, matches: Bool)
        throws
    {
        let made = try #require(SubjectPattern(pattern))
        #expect(made.matches(subject) == matches)
        #expect(made.description == pattern)
    }

    @Test(
        arguments: [
            // One attribute, whose value holds what looks like another.
            ("CN=*,O=Acme", "CN=evil\\,O=Acme", false), ("CN=evil,**", "CN=evil\\,O=Acme", false),
            ("CN=*", "CN=evil\\,O=Acme", true), ("CN=evil\\,O=Acme", "CN=evil\\,O=Acme", true),
            ("CN=*,O=x", "CN=back\\\\,O=x", true),
        ])
    func `an escaped comma ends no attribute`(pattern: String, subject: String, matches: Bool)
        throws
    {
        #expect(try #require(SubjectPattern(pattern)).matches(subject) == matches)
    }

    @Test(arguments: ["", "a", "CN", "=a", "CN=a,,O=b", "CN=a,", "*", "***"])
    func `what is no list of attributes is no pattern`(text: String) {
        #expect(SubjectPattern(text) == nil)
    }

    @Test func `a subject that may have been cut is not meant`() throws {
        let all = try #require(SubjectPattern("**"))
        #expect(all.matches("CN=" + String(repeating: "a", count: 252)))
        #expect(!all.matches("CN=" + String(repeating: "a", count: 253)))
    }

    @Test func `a listener with roots for clients serves no client without a certificate`() throws {
        var tls = ListenerTLS()
        #expect(tls.serves(subject: nil))
        tls.clientRoots = [.file(path: "/ca.pem", certificates: [[1]])]
        #expect(!tls.serves(subject: nil))
        #expect(tls.serves(subject: "CN=a"))
        tls.clientSubjects = [try #require(SubjectPattern("CN=b"))]
        #expect(!tls.serves(subject: nil))
        #expect(!tls.serves(subject: "CN=a"))
        #expect(tls.serves(subject: "CN=b"))
    }

    @Test func `connections continue unless more is requested`() {
        var before = ListenerTLS()
        before.certificates = [.init(path: "/a", chain: [1], keyPath: "/b", key: [2])]
        var now = before
        now.certificates[0].chain = [3]
        #expect(now.admits(connectionsOf: before))
        now.minimum = .tls13
        #expect(!now.admits(connectionsOf: before))
        now = before
        now.clientRoots = [.file(path: "/ca.pem", certificates: [[1]])]
        #expect(!now.admits(connectionsOf: before))
    }
}
