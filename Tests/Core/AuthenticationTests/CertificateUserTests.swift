import Testing
import Trust

@testable import Authentication

private typealias Attribute = CertificateNames.Attribute

private func attribute(_ type: String, _ value: String) -> Attribute {
    Attribute(
        type: ["CN": "2.5.4.3", "O": "2.5.4.10", "OU": "2.5.4.11", "UID": uid][type] ?? type,
        value: Array(value.utf8))
}

private let uid = "0.9.2342.19200300.100.1.1"

/// A subject in the order of RFC 4514, each relative name with one attribute.
private func names(_ attributes: (String, String)...) -> [[Attribute]] {
    attributes.map { [attribute($0.0, $0.1)] }
}

@Suite("Patterns for names of certificates")
struct NamePatternTests {
    private static let device = names(("CN", "device-7"), ("O", "Example"))

    @Test(arguments: [
        "CN=device-7,O=Example", "CN=device-*,O=Example", "CN=*,O=*", "CN=device-*,**",
        "**,O=Example", "**", "cn=device-7, o=Example",
        "2.5.4.3=device-7,O=Example", "CN=\\64evice-7,O=Example", "CN=d*v*-7,O=Ex*",
        "CN=device-7  ,  O=Example  ", "CN=d\\65vice\\2D7,O=Example", "**,CN=device-7,**",
    ])
    func `match what they say`(_ pattern: String) throws {
        #expect(try #require(NamePattern(pattern)).match(Self.device) != nil)
    }

    @Test(arguments: [
        "CN=device-7", "O=Example", "O=Example,CN=device-7", "CN=Device-7,O=Example",
        "CN=device-,O=Example", "CN=device-*,O=Example,C=*", "CN=device-\\*,O=Example",
        "CN=device-7+O=Example", "OU=device-7,O=Example", "CN=*,O=example", "CN=*",
        "**,C=*", "CN=device-7,O=Example,**,C=DE",
    ])
    func `match nothing else`(_ pattern: String) throws {
        #expect(try #require(NamePattern(pattern)).match(Self.device) == nil)
    }

    /// A value that looks like the rest of a name is a value.
    @Test func `compare attributes and not texts`() throws {
        let pattern = try #require(NamePattern("CN=device-*,O=Example"))
        for subject in [
            names(("CN", "device-7,O=Example")), names(("CN", "device-7,O=Example"), ("O", "Evil")),
            names(("CN", "device-7"), ("O", "Example,O=Evil")),
            [[attribute("CN", "device-7"), attribute("O", "Example")]],
            [
                [attribute("CN", "device-7"), attribute("OU", "x")], [attribute("O", "Example")],
            ],
            names(("CN", "device-7"), ("O", "Example"), ("CN", "root")),
            names(("CN", "root"), ("CN", "device-7"), ("O", "Example")), [],
        ] {
            #expect(pattern.match(subject) == nil, "\(subject)")
        }
        let odd = names(("CN", #"device-a,b+c"d\e<f>;g#"#), ("O", "Example"))
        #expect(pattern.match(odd) != nil)
        let exact = #"CN=device-a\,b\+c\"d\\e\<f\>\;g#,O=Example"#
        #expect(try #require(NamePattern(exact)).match(odd) == [])
    }

    @Test func `a set has exactly its attributes, in whatever order`() throws {
        let pattern = try #require(NamePattern("UID=7+CN=device-*,O=Example"))
        let (cn, id, o) = (
            attribute("CN", "device-1"), attribute("UID", "7"), attribute("O", "Example")
        )
        #expect(pattern.match([[cn, id], [o]]) == Array("1".utf8))
        #expect(pattern.match([[id, cn], [o]]) != nil)
        for other in [[[cn], [o]], [[id], [cn], [o]], [[cn, id, id], [o]], [[cn, cn], [o]]] {
            #expect(pattern.match(other) == nil)
        }
        #expect(try #require(NamePattern("CN=a+CN=a")).match([[cn, cn]]) == nil)
    }

    @Test(arguments: [
        "", "CN", "=x", "CN=", "CN=a,", ",CN=a", "CN=a,,O=b", "CN=a+", "1=a", "CN=#04024869",
        "CN=a\\", "CN=a\\x", "CN=a\\4", "CN=a\\00b", "CN=\"a\"", "CN=a;O=b", "CN=<a>", "a b=c",
        "1.02=a", "**=a", "**O=a", "**,**,**", "*", "CN=a\u{0}", "unknown=a", "CN=a\nb",
    ])
    func `others are no names`(_ text: String) { #expect(NamePattern(text) == nil) }

    @Test(arguments: [
        ("a*c", "abc", "b"), ("a*c", "ac", ""), ("a*c", "abbbc", "bbb"), ("*", "x", "x"),
        ("a*c", "a.c", nil), ("a*c", "a", nil), ("aa*a", "aa", nil), ("abc", "abc", ""),
        ("abc", "abd", nil), ("a*b*c", "axbyc", ""), ("a*b*c", "acb", nil), ("a*b*c", "a.bc", nil),
        ("*b*", "abc", ""), ("A*C", "abc", "b"), ("**", "x", ""),
    ])
    func `a star stands for what is no barrier`(
        _ pattern: String, _ text: String, _ star: String?
    ) {
        let pattern = TextPattern(pattern, barrier: UInt8(ascii: "."), ignoresCase: true)
        #expect(pattern.match(Array(text.utf8)) == star.map { Array($0.utf8) })
    }
}

@Suite("Whom certificates stand for")
struct CertificateUserTests {
    private func certificate(
        subject: [[Attribute]] = [], dns: [String] = [], email: [String] = [], uri: [String] = []
    ) -> CertificateNames {
        var names = CertificateNames()
        names.subject = subject
        names.dns = dns.map { Array($0.utf8) }
        names.email = email.map { Array($0.utf8) }
        names.uri = uri.map { Array($0.utf8) }
        return names
    }

    private func user(
        _ names: CertificateNames, _ rules: CertificateUserRule...
    ) -> String? {
        CertificateUsers(rules).user(of: names)?.name
    }

    private func subject(_ text: String) -> CertificateUserRule.Subject {
        .subject(NamePattern(text)!)
    }

    @Test func `the first rule that matches decides`() throws {
        let rules = [
            try CertificateUserRule(subject("CN=root,**"), user: "admin"),
            try CertificateUserRule(
                .dns("device-*.example.com"), user: "device:$1", groups: ["devices"]),
            try CertificateUserRule(.email("*@example.com"), user: "mail:$1"),
            try CertificateUserRule(.uri("spiffe://example.com/ns/*/main"), user: "ns:$1!"),
            try CertificateUserRule(subject("CN=*,O=Example"), user: "anyone"),
        ]
        let users = CertificateUsers(rules)
        func name(_ names: CertificateNames) -> String? { users.user(of: names)?.name }
        #expect(name(certificate(dns: ["device-7.example.com"])) == "device:7")
        #expect(users.user(of: certificate(dns: ["device-7.example.com"]))?.groups == ["devices"])
        // A DNS name is the same in either case.
        #expect(name(certificate(dns: ["DEVICE-7A.EXAMPLE.com"])) == "device:7a")
        #expect(
            name(certificate(dns: ["other.test", "device-7.example.com"])) == "device:7")
        #expect(name(certificate(email: ["ann@example.com"])) == "mail:ann")
        #expect(name(certificate(uri: ["spiffe://example.com/ns/prod/main"])) == "ns:prod!")
        #expect(name(certificate(subject: names(("CN", "x"), ("O", "Example")))) == "anyone")
        let both = certificate(
            subject: names(("CN", "root"), ("O", "Example")), dns: ["device-7.example.com"])
        #expect(name(both) == "admin")
        for other in [
            certificate(), certificate(dns: ["device-7.example.com.evil.test"]),
            certificate(dns: ["x.device-7.example.com"]),
            certificate(dns: ["device-.a.example.com"]),
            certificate(dns: ["device-7.other.example.com"]),
            certificate(email: ["device-7.example.com"]), certificate(email: ["a@b@example.com"]),
            certificate(uri: ["spiffe://example.com/ns/a/b/main"]),
            certificate(uri: ["ann@example.com"]), certificate(subject: names(("CN", "x"))),
        ] {
            #expect(name(other) == nil, "\(other)")
        }
    }

    @Test func `one that matches in two ways stands for nobody`() throws {
        let rule = try CertificateUserRule(.dns("*.example.com"), user: "d:$1")
        let fallback = try CertificateUserRule(subject("**"), user: "anyone")
        #expect(user(certificate(dns: ["a.example.com", "A.example.com"]), rule) == "d:a")
        for dns in [
            ["a.example.com", "b.example.com"], ["*.example.com"], [".example.com"],
            ["a\"b.example.com"],
        ] {
            #expect(user(certificate(dns: dns), rule, fallback) == nil, "\(dns)")
        }
        let fixed = try CertificateUserRule(.dns("*.example.com"), user: "device")
        #expect(user(certificate(dns: ["a.example.com", "b.example.com"]), fixed) == "device")
        let named = try CertificateUserRule(subject("CN=*"), user: "cn:$1")
        #expect(user(certificate(subject: names(("CN", "ann"))), named) == "cn:ann")
        for value in ["a b", "ä", "*", "a\\b"] {
            #expect(user(certificate(subject: names(("CN", value))), named, fallback) == nil)
        }
    }

    @Test(
        arguments: [
            ("*.example.com", "d:$1", nil), ("*.example.com", "$1", .mayBeInFile),
            ("*.example.com", "d-$1", .mayBeInFile), ("*.example.com", "$1:d", .mayBeInFile),
            ("example.com", "d:$1", .stars), ("*.*.com", "d:$1", .stars), ("*", "a b", .user),
            ("*", "a:b", .user), ("*", "", .user), ("*", "a:$2", .user), ("*", "a:$1$1", .user),
            ("*", "a:$", .user), ("*", "ü", nil), ("*", "ü:$1", .user), ("*", "device", nil),
        ] as [(String, String, CertificateUserRuleError?)])
    func `a name from a certificate is never that of a file`(
        _ pattern: String, _ user: String, _ error: CertificateUserRuleError?
    ) {
        do throws(CertificateUserRuleError) {
            _ = try CertificateUserRule(.dns(pattern), user: user)
            #expect(error == nil)
        } catch let found {
            #expect(found == error)
        }
    }

    @Test func `which names a rule may give`() throws {
        let rule = try CertificateUserRule(.dns("*.example.com"), user: "d:$1!")
        #expect(rule.mayName("d:a!") && rule.mayName("d:a!b!") && rule.fixedUser == nil)
        for other in ["d:!", "d:a", "a!", "e:a!", "d:a b!"] { #expect(!rule.mayName(other)) }
        let fixed = try CertificateUserRule(.dns("*"), user: "device", groups: ["g"])
        #expect(fixed.mayName("device") && !fixed.mayName("devices"))
        #expect(fixed.fixedUser == "device" && fixed != rule)
        #expect(throws: CertificateUserRuleError.groups) {
            try CertificateUserRule(.dns("*"), user: "device", groups: ["a b"])
        }
    }

    @Test func `an identity is confirmed while the rules give the same`() throws {
        func store(_ rules: [CertificateUserRule], _ text: String = "") throws -> CredentialStore {
            CredentialStore(
                realm: "r", groups: try groups(text), certificates: CertificateUsers(rules))
        }
        let rule = try CertificateUserRule(.dns("a.test"), user: "device", groups: ["x"])
        let shown = certificate(dns: ["a.test"])
        let before = try store([rule], "g: device")
        let identity = try #require(before.identity(of: shown, until: 100))
        #expect(identity.groups == ["g", "x"] && identity.method == .certificate)
        #expect(before.confirms(identity, at: 99) && !before.confirms(identity, at: 100))
        #expect(try store([rule, rule], "g: device").confirms(identity, at: 0))
        #expect(try !store([rule]).confirms(identity, at: 0))
        #expect(try !store([], "g: device").confirms(identity, at: 0))
        let other = try CertificateUserRule(.dns("a.test"), user: "other", groups: ["x"])
        #expect(try !store([other, rule], "g: device other").confirms(identity, at: 0))
        #expect(before.identity(of: certificate(dns: ["b.test"]), until: 100) == nil)
        #expect(before.challenges([.certificate]).isEmpty)
        #expect(before.challenges([.certificate, .basic]).count == 1)
    }
}
