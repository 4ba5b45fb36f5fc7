extension SetupGuide {
    private var pac: String { "\(site)/proxy.pac" }

    /// Operating systems.
    var systems: [Section] { [ios, android, windows, macOS] }

    /// Browsers with their own settings.
    var browsers: [Section] { [firefox, chrome] }

    private var ios: Section {
        Section(
            title: "iOS, iPadOS",
            lines: [
                "Settings > Wi-Fi > (i) > Configure Proxy > Automatic > \(pac)"
            ]
                + ifTrusted(
                    "Safari: open \(site)/ca.der and allow the download",
                    "Settings > General > VPN & Device Management > the profile > Install",
                    "Settings > General > About > Certificate Trust Settings > switch it on"))
    }

    private var android: Section {
        Section(
            title: "Android",
            note: fingerprint == nil
                ? ""
                : "Apps for Android 7 and later trust it only if their network security "
                    + "configuration names user certificates: <certificates src=\"user\"/>.",
            lines: [
                "Settings > Network & internet > Wi-Fi > the network > Edit > Proxy > Auto-config "
                    + "> \(pac)",
                "adb shell settings put global http_proxy \(proxy)    # or over a cable",
            ]
                + ifTrusted(
                    "Browser: download \(site)/ca.der",
                    "Settings > Security > Encryption & credentials > Install a certificate > CA "
                        + "certificate"))
    }

    private var windows: Section {
        let key = #""HKCU\Software\Microsoft\Windows\CurrentVersion\Internet Settings""#
        return Section(
            title: "Windows (an administrator's command prompt)",
            lines: ifTrusted(
                "curl.exe -o pinfold-ca.cer \(site)/ca.der",
                "certutil -addstore -f Root pinfold-ca.cer")
                + [
                    "reg add \(key) /v AutoConfigURL /t REG_SZ /d \(pac) /f",
                    "netsh winhttp set proxy \(proxy) \"<local>\"",
                ])
    }

    private var macOS: Section {
        Section(
            title: "macOS",
            lines: ifTrusted(
                "curl -o pinfold-ca.pem \(site)/ca.pem",
                "sudo security add-trusted-cert -d -r trustRoot "
                    + "-k /Library/Keychains/System.keychain pinfold-ca.pem")
                + ["networksetup -setautoproxyurl Wi-Fi \(pac)"])
    }

    private var firefox: Section {
        Section(
            title: "Firefox",
            note: fingerprint == nil
                ? "" : "For a fleet, the policies Proxy and Certificates.Install do the same.",
            lines: [
                "Settings > Network Settings > Automatic proxy configuration URL > \(pac)"
            ]
                + ifTrusted(
                    "Settings > Privacy & Security > View Certificates > Authorities > Import > "
                        + "pinfold-ca.pem, to identify websites"))
    }

    private var chrome: Section {
        Section(
            title: "Chrome, Chromium",
            note: fingerprint == nil
                ? ""
                : "On Windows and macOS it trusts what the system trusts. The lines after the "
                    + "first are for Linux (package libnss3-tools).",
            lines: ["google-chrome --proxy-pac-url=\(pac)    # or chromium"]
                + ifTrusted(
                    "mkdir -p $HOME/.pki/nssdb",
                    "certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n pinfold -i pinfold-ca.pem"))
    }
}
