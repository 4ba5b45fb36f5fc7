import HTTPTypes
import Testing

@testable import PinfoldClient

extension ProxyConfiguration {
    /// The URL of the proxy for a URL without credentials, or `nil` for none.
    fileprivate func url(for url: String) throws -> String? {
        try proxy(for: try HTTPRequest(.get, url)).map { "\($0)" }
    }
}

@Suite("Which proxy a request goes through")
struct ProxyConfigurationTests {
    @Test(
        arguments: [
            ("http://proxy.test:3128", "http://proxy.test:3128", nil, nil),
            ("http://Proxy.Test", "http://proxy.test:80", nil, nil),
            ("HTTPS://proxy.test/", "https://proxy.test:443", nil, nil),
            ("proxy.test:3128", "http://proxy.test:3128", nil, nil),
            ("proxy_1.test:", "http://proxy_1.test:80", nil, nil),
            ("127.0.0.1:1", "http://127.0.0.1:1", nil, nil),
            ("http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080", nil, nil),
            ("[::1]", "http://[::1]:80", nil, nil),
            ("http://u:p@proxy.test:1", "http://proxy.test:1", "u", "p"),
            ("u@proxy.test:1", "http://proxy.test:1", "u", ""),
            ("http://:p@proxy.test:1", "http://proxy.test:1", "", "p"),
            ("http://a%40b:c%3ad%2F@proxy.test:1", "http://proxy.test:1", "a@b", "c:d/"),
            ("http://u:p:q@proxy.test:1", "http://proxy.test:1", "u", "p:q"),
            ("http://u:@r@proxy.test:1", "http://proxy.test:1", "u", "@r"),
            ("http://%C3%A9:x@proxy.test:1", "http://proxy.test:1", "é", "x"),
        ] as [(String, String, String?, String?)])
    func `its url is read`(
        text: String, url: String, user: String?, password: String?
    ) throws {
        let proxy = try Proxy(text)
        #expect("\(proxy)" == url)
        #expect(proxy.user == user)
        #expect(proxy.password == password)
        #expect((proxy.authorization != nil) == (user != nil))
    }

    @Test(
        arguments: [
            "", "http://", "socks4://127.0.0.1:1080", "ftp://proxy.test", "http://proxy.test:0",
            "http://proxy.test:65536", "http://proxy.test:x", "http://proxy.test:-1",
            "http://proxy.test:1/path", "http://proxy.test:1?q", "http://2001:db8::1:80",
            "http://[2001:db8::1", "http://[proxy.test]:1", "http://[127.0.0.1]:1",
            "http://a b:1", "http://pröxy.test:1", "http://secret:secret@", "http://%zz@p:1",
            "http://secret%:1@p:1", "http://%ff:secret@p:1", "http://a%0ab:secret@p:1",
            "http://a%3Ab:secret@p:1", "socks5://:secret@p:1",
            "http://" + String(repeating: "a", count: 254),
        ])
    func `an invalid URL is rejected, without secrets in the message`(text: String) {
        let error = #expect(throws: ClientError.self) { _ = try Proxy(text) }
        #expect(error?.reason == .invalidProxy)
        #expect("\(error.map { "\($0)" } ?? "")".contains("secret") == false)
    }

    @Test func `a SOCKS5 proxy has its own port and takes credentials in its own form`() throws {
        for scheme in ["socks5", "socks5h"] {
            let proxy = try Proxy("\(scheme)://user:secret@proxy.test")
            #expect("\(proxy)" == "\(scheme)://proxy.test:1080")
            #expect(proxy.authorization == nil)
            #expect(proxy.socksCredentials != nil)
            #expect(try Proxy("\(scheme)://proxy.test:9").socksCredentials == nil)
        }
    }

    @Test func `credentials are never shown`() throws {
        let proxy = try Proxy("http://user:secret@proxy.test:1")
        #expect(proxy.authorization == "Basic dXNlcjpzZWNyZXQ=")
        var dumped = ""
        dump(proxy, to: &dumped)
        for text in ["\(proxy)", String(reflecting: proxy), dumped] {
            #expect(!text.contains("secret") && !text.contains("dXNl"), "\(text)")
        }
        #expect(try Proxy("http://user:secret@p:1") != Proxy("http://user:other@p:1"))
    }

    @Test(
        arguments: [
            ("example.com", ["http://example.com/", "https://API.example.com./"]),
            (".example.com", ["http://example.com/", "http://a.b.example.com:81/"]),
            ("*.example.com", ["http://example.com/", "http://a.example.com/"]),
            ("EXAMPLE.com.", ["http://example.COM/"]),
            ("example.com:8080", ["http://example.com:8080/", "http://a.example.com:8080/"]),
            ("example.com:443", ["https://example.com/"]),
            ("localhost, 127.0.0.1 ::1", ["http://localhost/", "http://127.0.0.1:8/"]),
            ("localhost,127.0.0.1,::1", ["http://[::1]:8/", "http://[0:0::1]/"]),
            ("10.0.0.0/8", ["http://10.1.2.3/", "http://[::ffff:10.1.2.3]/"]),
            ("10.1.2.3/8", ["http://10.255.0.1/"]),
            ("fd00::/8", ["http://[fd12::1]/"]),
            ("[fd12::1]", ["http://[fd12::1]:99/"]),
            ("[fd12::1]:99", ["http://[fd12::1]:99/"]),
            ("192.0.2.1:81", ["http://192.0.2.1:81/"]),
            (".example.com:443", ["https://example.com/", "https://a.example.com/"]),
            ("*:8080", ["http://anything.test:8080/", "http://[::1]:8080/"]),
            ("10.0.0.0/8:81,fd00::/8", ["http://10.1.2.3:81/", "http://[fd12::1]/"]),
            ("[fd00::]/8:81", ["http://[fd12::1]:81/"]),
            ("*", ["http://anything.test/", "https://[::1]/"]),
            (",, *,", ["http://anything.test/"]),
        ])
    func `a host in the list is reached without one`(list: String, urls: [String]) throws {
        let proxy = try Proxy("proxy.test:1")
        let fixed = ProxyConfiguration.fixed(proxy, bypass: try ProxyBypass(list))
        let named = ProxyConfiguration.variables(["all_proxy": "proxy.test:1", "no_proxy": list])
        for url in urls {
            #expect(try fixed.url(for: url) == nil, "\(url)")
            #expect(try named.url(for: url) == nil, "\(url)")
        }
    }

    @Test(
        arguments: [
            ("", ["http://example.com/"]),
            ("example.com", ["http://badexample.com/", "http://example.com.evil.test/"]),
            ("api.example.com", ["http://example.com/"]),
            ("example.com:8080", ["http://example.com/", "https://example.com/"]),
            ("10.0.0.0/8", ["http://11.0.0.1/", "http://10.0.0.1.test/", "http://[::a00:1]/"]),
            ("0.0.0.0/0", ["http://[2001:db8::1]/", "http://example.com/"]),
            ("::1", ["http://[::2]/", "http://127.0.0.1/"]),
            ("1.2.3.4:81", ["http://1.2.3.4/"]), ("*:81", ["http://example.com/"]),
            ("10.0.0.0/8:81", ["http://10.1.2.3/", "http://11.1.2.3:81/"]),
            (".example.com:443", ["http://example.com/", "https://example.com:8443/"]),
            ("com", ["http://com.test/"]), ("\u{212A}.test", ["http://k.test/"]),
            ("3.4", ["http://1.2.3.4/"]),
        ])
    func `a host that is not in the list is reached through it`(
        list: String, urls: [String]
    ) throws {
        let fixed = ProxyConfiguration.fixed(
            try Proxy("proxy.test:1"), bypass: try ProxyBypass(list))
        for url in urls { #expect(try fixed.url(for: url) == "http://proxy.test:1", "\(url)") }
    }

    @Test(arguments: [
        "http://example.com", "a b@c", "10.0.0.0/33", "[::1", "x:99999", "a*b", "fd00::/8:81",
        "*:x",
    ])
    func `an invalid element of a list is rejected, and ignored in the environment`(
        element: String
    ) throws {
        #expect(throws: ClientError.self) { _ = try ProxyBypass("good.test,\(element)") }
        let named = ProxyConfiguration.variables([
            "http_proxy": "proxy.test:1", "no_proxy": "good.test,\(element)",
        ])
        #expect(try named.url(for: "http://good.test/") == nil)
        #expect(try named.url(for: "http://example.com/") == "http://proxy.test:1")
    }

    @Test func `a list has a limit`() throws {
        let names = (0...ProxyBypass.maximumElements).map { "h\($0)" }
        #expect(throws: ClientError.self) { _ = try ProxyBypass(names.joined(separator: ",")) }
        _ = try ProxyBypass(names.dropFirst().joined(separator: ","))
    }

    @Test(
        arguments: [
            ([:], nil, nil),
            (["http_proxy": "h:1"], "http://h:1", nil),
            (["https_proxy": "s:1"], nil, "http://s:1"),
            (["HTTPS_PROXY": "https://s:1"], nil, "https://s:1"),
            (["https_proxy": "s:1", "HTTPS_PROXY": "t:1"], nil, "http://s:1"),
            (["all_proxy": "a:1"], "http://a:1", "http://a:1"),
            (["ALL_PROXY": "a:1"], "http://a:1", "http://a:1"),
            (["all_proxy": "a:1", "ALL_PROXY": "b:1"], "http://a:1", "http://a:1"),
            (["http_proxy": "h:1", "ALL_PROXY": "a:1"], "http://h:1", "http://a:1"),
            (["http_proxy": "", "all_proxy": "a:1"], "http://a:1", "http://a:1"),
            // What a client of a CGI program could set.
            (["HTTP_PROXY": "evil:1"], nil, nil),
            (["HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"], nil, nil),
            (["http_proxy": "h:1", "no_proxy": "origin.test"], nil, nil),
            (["http_proxy": "h:1", "NO_PROXY": "origin.test"], nil, nil),
            (["http_proxy": "h:1", "no_proxy": "x", "NO_PROXY": "*"], "http://h:1", nil),
        ] as [([String: String], String?, String?)])
    func `the environment is read as curl reads it`(
        variables: [String: String], http: String?, https: String?
    ) throws {
        let configuration = ProxyConfiguration.variables(variables)
        #expect(try configuration.url(for: "http://origin.test/") == http)
        #expect(try configuration.url(for: "https://origin.test/") == https)
    }

    @Test func `a variable without a valid proxy is an error for its requests`() throws {
        let configuration = ProxyConfiguration.variables([
            "https_proxy": "socks4://user:secret@127.0.0.1:1080", "no_proxy": "direct.test",
        ])
        let error = #expect(throws: ClientError.self) {
            _ = try configuration.url(for: "https://origin.test/")
        }
        #expect(error?.reason == .invalidProxy)
        #expect(error?.explanation.contains("https_proxy") == true)
        #expect(error?.explanation.contains("secret") == false)
        #expect(try configuration.url(for: "http://origin.test/") == nil)
        #expect(try configuration.url(for: "https://direct.test/") == nil)
    }

    @Test func `there may be one for each scheme`() throws {
        let configuration = ProxyConfiguration.fixed(http: nil, https: try Proxy("s:1"))
        #expect(try configuration.url(for: "http://origin.test/") == nil)
        #expect(try configuration.url(for: "https://origin.test/") == "http://s:1")
        #expect(try ProxyConfiguration.direct.url(for: "http://origin.test/") == nil)
    }
}
