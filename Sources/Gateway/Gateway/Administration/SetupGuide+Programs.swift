extension SetupGuide {
    /// Programs and languages.
    var programs: [Section] {
        [curl, wget, requests, httpx, node, java, go, git, apt, pip, npm, docker, systemd]
    }

    private var curl: Section {
        Section(
            title: "curl",
            lines: [
                "curl --proxy \(proxyURL)"
                    + (fingerprint == nil ? "" : " --cacert pinfold-bundle.pem")
                    + " http://example.com/"
            ])
    }

    private var wget: Section {
        Section(
            title: "wget",
            lines: [
                "wget -e http_proxy=\(proxyURL) -e https_proxy=\(proxyURL)"
                    + (fingerprint == nil ? "" : " --ca-certificate=pinfold-bundle.pem")
                    + " http://example.com/"
            ])
    }

    private var requests: Section {
        Section(
            title: "Python: requests",
            lines: ["export HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)"]
                + ifTrusted("export REQUESTS_CA_BUNDLE=\"\(bundle)\""))
    }

    private var httpx: Section {
        Section(
            title: "Python: httpx",
            lines: ["export HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)"]
                + ifTrusted("export SSL_CERT_FILE=\"\(bundle)\""))
    }

    private var node: Section {
        Section(
            title: "Node",
            note: "The proxy variables are supported from version 22.21 or 24 on. Before that, "
                + "pass the address to undici's ProxyAgent.",
            lines: ["export NODE_USE_ENV_PROXY=1 HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)"]
                + ifTrusted("export NODE_EXTRA_CA_CERTS=\"$PWD/pinfold-ca.pem\""))
    }

    private var java: Section {
        let options =
            "-Dhttp.proxyHost=\(proxyHost) -Dhttp.proxyPort=\(proxyPort) "
            + "-Dhttps.proxyHost=\(proxyHost) -Dhttps.proxyPort=\(proxyPort)"
        return Section(
            title: "Java",
            lines: ifTrusted(
                "sudo keytool -importcert -noprompt -cacerts -storepass changeit -alias pinfold "
                    + "-file pinfold-ca.pem")
                + ["export JAVA_TOOL_OPTIONS=\"\(options)\""])
    }

    private var go: Section {
        Section(
            title: "Go",
            note: fingerprint == nil
                ? "" : "On macOS and Windows, Go uses the system's certificates instead.",
            lines: ["export HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)"]
                + ifTrusted("export SSL_CERT_FILE=\"\(bundle)\""))
    }

    private var git: Section {
        Section(
            title: "git",
            lines: ["git config --global http.proxy \(proxyURL)"]
                + ifTrusted("git config --global http.sslCAInfo \"\(bundle)\""))
    }

    private var apt: Section {
        Section(
            title: "apt",
            note: fingerprint == nil
                ? ""
                : "It uses the system's certificates, unless its own configuration names others.",
            lines: [
                "printf 'Acquire::%s::Proxy \"\(proxyURL)\";\\n' http https "
                    + "| sudo tee /etc/apt/apt.conf.d/90pinfold"
            ])
    }

    private var pip: Section {
        Section(
            title: "pip",
            lines: ["pip config set global.proxy \(proxyURL)"]
                + ifTrusted("pip config set global.cert \"\(bundle)\""))
    }

    private var npm: Section {
        Section(
            title: "npm",
            lines: [
                "npm config set proxy \(proxyURL)", "npm config set https-proxy \(proxyURL)",
            ] + ifTrusted("npm config set cafile \"\(bundle)\""))
    }

    private var docker: Section {
        let variables =
            "\"HTTP_PROXY=\(proxyURL)\" \"HTTPS_PROXY=\(proxyURL)\" "
            + "\"NO_PROXY=localhost,127.0.0.1\""
        return Section(
            title: "Docker: the daemon, then containers",
            note: "A container has its own loopback interface: the gateway must listen on an "
                + "address that containers can reach.",
            lines: [
                "sudo mkdir -p /etc/systemd/system/docker.service.d",
                "printf '[Service]\\nEnvironment=%s\\n' '\(variables)' "
                    + "| sudo tee /etc/systemd/system/docker.service.d/pinfold.conf",
                "sudo systemctl daemon-reload && sudo systemctl restart docker",
                "",
                "docker run -e http_proxy=\(proxyURL) -e https_proxy=\(proxyURL) IMAGE",
            ]
                + ifTrusted(
                    "", "# In a Dockerfile of Debian or Alpine:",
                    "COPY pinfold-ca.pem /usr/local/share/ca-certificates/pinfold-ca.crt",
                    "RUN update-ca-certificates"))
    }

    private var systemd: Section {
        Section(
            title: "systemd units",
            note: "Use with `sudo systemctl edit UNIT`, then restart the unit.",
            lines: [
                "[Service]", "Environment=http_proxy=\(proxyURL) https_proxy=\(proxyURL)",
                "Environment=HTTP_PROXY=\(proxyURL) HTTPS_PROXY=\(proxyURL)",
            ]
                + ifTrusted(
                    "# After update-ca-certificates, above:",
                    "Environment=SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"))
    }
}
