import HTTPCore
import PinfoldMetrics
import Testing

@testable import Gateway

@Suite("Admin: the pages by which clients are set up")
struct SetupTests {
    private static let authority = AdminSetup.Authority(
        pem: Array("PEM".utf8), der: [0x30, 0x00], fingerprint: "AA:BB")
    private static let site = AdminSite(
        source: AdminSource(
            metrics: {
                MetricsSnapshot(
                    workers: [],
                    service: ServiceMetrics())
            }, readiness: { .ready }), version: "1")

    private func setup(
        host: String = "192.0.2.1", hasProxy: Bool = true, isTrusted: Bool = true
    ) -> AdminSetup {
        AdminSetup(
            proxy: hasProxy ? AdminSetup.Address(host: host, port: 8080) : nil,
            site: AdminSetup.Address(host: host, port: 9090),
            authority: isTrusted ? Self.authority : nil)
    }

    private func ask(
        _ target: String, _ setup: AdminSetup?, accept: String? = nil
    ) -> AdminResponse {
        Self.site.respond(
            to: AdminRequest(method: .get, target: target, accept: accept, setup: setup))
    }

    private func body(_ response: AdminResponse) -> String {
        String(decoding: response.body, as: UTF8.self)
    }

    @Test(
        arguments: [
            ("/ca.pem", "pinfold-ca.pem", authority.pem),
            ("/ca.der", "pinfold-ca.cer", authority.der),
        ])
    func `the certificate is given in both forms`(
        target: String, name: String, bytes: [UInt8]
    ) {
        let given = ask(target, setup(hasProxy: false))
        #expect(given.status == 200)
        #expect("\(given.contentType)" == "application/x-x509-ca-cert")
        #expect(given.body == bytes)
        let file = given.fields.first { $0.name == "Content-Disposition" }?.value
        #expect(file == "inline; filename=\"\(name)\"")
        let missing = ask(target, setup(isTrusted: false))
        #expect(missing.status == 404)
        #expect(
            body(missing)
                == "there is no certificate authority for interception; create one with pinfold "
                + "ca init and name it in interception.certificate\n")
    }

    @Test(arguments: [("192.0.2.1", "192.0.2.1:8080"), ("[2001:db8::1]", "[2001:db8::1]:8080")])
    func `the auto-configuration file names the proxy and no way around it`(
        host: String, proxy: String
    ) {
        let given = ask("/proxy.pac", setup(host: host, isTrusted: false))
        #expect("\(given.contentType)" == "application/x-ns-proxy-autoconfig")
        #expect(body(given).contains("return \"PROXY \(proxy)\";"))
        #expect(body(given).components(of: "DIRECT") == 1)
    }

    @Test func `a proxy with TLS for its clients is written as HTTPS`() throws {
        var secure = setup()
        secure.proxy?.isSecure = true
        #expect(body(ask("/proxy.pac", secure)).contains("return \"HTTPS 192.0.2.1:8080\";"))
        let text = body(ask("/setup", secure))
        #expect(text.contains("\n    curl --proxy https://192.0.2.1:8080 "))
        #expect(text.contains("a listener without tls"))
        #expect(!text.contains("http://192.0.2.1:8080"))
        #expect(text.contains("http://192.0.2.1:9090/ca.pem"))
        #expect(!body(ask("/setup", setup())).contains("a listener without tls"))
    }

    @Test(arguments: ["/setup", "/proxy.pac"])
    func `without a forward proxy there is nothing to set up`(target: String) {
        let missing = ask(target, setup(hasProxy: false))
        #expect(missing.status == 404)
        #expect(body(missing).hasPrefix("there is no forward proxy"))
    }

    private static let clients = [
        "curl", "wget", "requests", "httpx", "Node", "Java", "Go", "git", "apt", "pip", "npm",
        "Docker", "systemd", "iOS", "Android", "Windows", "macOS", "Firefox", "Chrome",
    ]

    @Test(arguments: clients)
    func `every kind of client has lines with the gateway's address`(client: String) throws {
        for isTrusted in [true, false] {
            let guide = try #require(SetupGuide(setup(isTrusted: isTrusted)))
            let section = try #require(
                guide.sections.first {
                    $0.title.split(whereSeparator: { !$0.isLetter }).contains(client[...])
                },
                "\(client)")
            #expect(section.lines.contains { $0.contains("192.0.2.1") })
            // The part about the certificate is present only if there is one.
            let aboutTrust = section.lines.contains {
                $0.contains("pinfold-ca") || $0.contains("pinfold-bundle") || $0.contains("ca.der")
                    || $0.contains("ca-certificates")
            }
            #expect(aboutTrust == (isTrusted && client != "apt"), "\(client)")
        }
    }

    @Test func `the fingerprint is there to compare`() throws {
        let guide = try #require(SetupGuide(setup()))
        #expect(guide.sections.first?.lines.contains("# AA:BB") == true)
        #expect(!body(ask("/setup", setup(isTrusted: false))).contains("ca.pem"))
    }

    @Test func `a browser is given a page, a terminal plain text`() {
        for accept in [nil, "*/*", "text/plain", "text/html;q=0.5, text/plain"] {
            let given = ask("/setup", setup(), accept: accept)
            #expect("\(given.contentType)" == "text/plain; charset=utf-8")
            #expect(body(given).contains("\n    curl --proxy http://192.0.2.1:8080 "))
            #expect(!body(given).contains("<pre"))
        }
        let page = ask("/setup", setup(), accept: "text/html,application/xhtml+xml,*/*;q=0.8")
        #expect("\(page.contentType)" == "text/html; charset=utf-8")
        #expect(body(page).contains("<pre tabindex=\"0\">curl --proxy http://192.0.2.1:8080 "))
        #expect(body(page).contains("<a href=\"/ca.der\">"))
        for field in LivePage.protection { #expect(page.fields.contains(field)) }
        #expect(page.fields.contains(AdminSite.varyAccept))
    }

    @Test func `nothing in the page is markup but the page's own`() throws {
        let page = body(ask("/setup", setup(host: "<script>&\"'"), accept: "text/html"))
        #expect(!page.contains("<script>"))
        #expect(page.contains("&lt;script&gt;&amp;&quot;"))
        // Android's example of a configuration.
        #expect(page.contains("&lt;certificates src=&quot;user&quot;/&gt;"))
    }

    @Test(arguments: ["/ca.pem", "/ca.der?x", "/proxy.pac", "/setup?a"])
    func `what the pages show is looked up for them`(target: String) {
        #expect(AdminSetup.isShown(at: target))
    }

    @Test(arguments: ["/", "/metrics", "/healthz", "/readyz", "/setup/", "/ca.key", "/x?/setup"])
    func `what the pages show is not looked up for others`(target: String) {
        #expect(!AdminSetup.isShown(at: target))
    }
}

extension String {
    /// How often a word occurs in the text.
    fileprivate func components(of word: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.firstRange(of: word) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}
