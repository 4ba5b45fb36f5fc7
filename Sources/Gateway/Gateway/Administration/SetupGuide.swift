import Documents

/// Instructions for each kind of client on how to use the gateway: lines to paste, containing the
/// gateway's address.
struct SetupGuide {
    /// One kind of client.
    struct Section: Equatable {
        var title: String
        /// What to know; may be empty.
        var note = ""
        /// What to paste or do, line by line.
        var lines: [String]
    }

    /// `192.0.2.1:8080`
    let proxy: String
    /// `192.0.2.1`, IPv6 without brackets.
    let proxyHost: String
    let proxyPort: String
    /// Whether clients speak TLS to the proxy.
    let isSecure: Bool
    /// `http://192.0.2.1:8080`
    let proxyURL: String
    /// `http://192.0.2.1:9090`
    let site: String
    /// The fingerprint of the authority that clients must trust, or `nil` if there is none.
    let fingerprint: String?

    /// Returns `nil` without a forward proxy.
    init?(_ setup: AdminSetup) {
        guard let address = setup.proxy else { return nil }
        proxy = "\(address.host):\(address.port)"
        proxyHost = address.host.filter { $0 != "[" && $0 != "]" }
        proxyPort = "\(address.port)"
        isSecure = address.isSecure
        proxyURL = address.url
        site = setup.site.url
        fingerprint = setup.authority?.fingerprint
    }

    /// The gateway's certificate together with those that Debian's programs trust anyway: most
    /// programs take one file that replaces their own.
    var bundle: String { "$PWD/pinfold-bundle.pem" }

    /// Lines that apply only if there is an authority to trust.
    func ifTrusted(_ lines: String...) -> [String] { fingerprint == nil ? [] : lines }

    /// All sections.
    var sections: [Section] { certificate + [shell] + programs + systems + browsers }

    private var certificate: [Section] {
        guard let fingerprint else { return [] }
        return [
            Section(
                title: "The certificate, first",
                note: "It is downloaded in clear text: before anything trusts it, compare its "
                    + "fingerprint with the output of `pinfold ca show` on the gateway.",
                lines: [
                    "curl -o pinfold-ca.pem \(site)/ca.pem",
                    "openssl x509 -in pinfold-ca.pem -noout -fingerprint -sha256",
                    "# \(fingerprint)",
                    "cat /etc/ssl/certs/ca-certificates.crt pinfold-ca.pem > pinfold-bundle.pem",
                ]),
            Section(
                title: "Linux, for all programs that use the system's certificates",
                note: "Debian, Ubuntu, Alpine; then Fedora, Red Hat.",
                lines: [
                    "sudo cp pinfold-ca.pem /usr/local/share/ca-certificates/pinfold-ca.crt",
                    "sudo update-ca-certificates",
                    "",
                    "sudo cp pinfold-ca.pem /etc/pki/ca-trust/source/anchors/pinfold-ca.pem",
                    "sudo update-ca-trust",
                ]),
        ]
    }

    private var shell: Section {
        Section(
            title: "A shell, and most programs started from it",
            lines: [
                "export http_proxy=\(proxyURL) https_proxy=\(proxyURL)",
                "export HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)",
                "export no_proxy=localhost,127.0.0.1,::1 NO_PROXY=localhost,127.0.0.1,::1",
            ])
    }
}

// MARK: As text and as a page

extension SetupGuide {
    private var introduction: String {
        let text =
            "How to set up clients to use the gateway. Its address in these lines is the one by "
            + "which you reached this page: replace it for clients that use another one."
        guard isSecure else { return text }
        return text
            + " Clients speak TLS to this proxy. Those that cannot, such as Java and most devices, "
            + "need a listener without tls."
    }

    /// For people with a terminal.
    var text: String {
        var text = "\(introduction)\n"
        for section in sections {
            text += "\n# \(section.title)\n"
            if !section.note.isEmpty { text += "# \(section.note)\n" }
            text += "\n"
            for line in section.lines { text += line.isEmpty ? "\n" : "    \(line)\n" }
        }
        return text
    }

    /// For the live page.
    var json: DocumentValue {
        .dictionary([
            "introduction": .string(introduction), "proxy": .string(proxyURL),
            "certificate": .boolean(fingerprint != nil),
            "sections": .array(
                sections.map { section in
                    .dictionary([
                        "title": .string(section.title), "note": .string(section.note),
                        "lines": .array(section.lines.map { .string($0) }),
                    ])
                }),
        ])
    }

    /// For people with a browser, who may have no token and need no script: in the look of the live
    /// page.
    var html: String {
        var body = "<p>\(HTMLText.escaped(introduction))</p>\n"
        body += "<p>The proxy auto-configuration file: <a href=\"/proxy.pac\">/proxy.pac</a>."
        if fingerprint != nil {
            body += " The certificate: <a href=\"/ca.pem\">/ca.pem</a>, as DER "
            body += "<a href=\"/ca.der\">/ca.der</a>."
        }
        body += "</p>\n"
        for section in sections {
            body += "<section class=\"panel\">\n<h2>\(HTMLText.escaped(section.title))</h2>\n"
            if !section.note.isEmpty { body += "<p>\(HTMLText.escaped(section.note))</p>\n" }
            let lines = section.lines.map(HTMLText.escaped).joined(separator: "\n")
            body += "<pre tabindex=\"0\">\(lines)</pre>\n</section>\n"
        }
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Pinfold: setup</title>
            <link rel="icon" href="/page/icon.svg">
            <link rel="stylesheet" href="/page/base.css">
            <link rel="stylesheet" href="/page/panels.css">
            </head>
            <body>
            <header class="top">
            <a class="brand" href="/">Pinfold</a>
            <nav aria-label="Panels">
            <a href="/">Overview</a> <a href="/setup" aria-current="page">Setup</a>
            </nav>
            </header>
            <main class="prose">
            <h1>Setup</h1>
            \(body)</main>
            </body>
            </html>

            """
    }
}
