import PinfoldMetrics

extension AdminSite {
    /// The pages for setting up clients.
    func setup(_ page: Page, _ request: AdminRequest) -> AdminResponse {
        guard let setup = request.setup else {
            return message(404, "not_found", "no such page; see /", request)
        }
        switch page {
        case .authorityPEM: return certificate(setup.authority?.pem, "pinfold-ca.pem", request)
        case .authorityDER: return certificate(setup.authority?.der, "pinfold-ca.cer", request)
        case .index, .metrics, .health, .readiness, .setup, .proxyConfiguration: break
        }
        guard let guide = SetupGuide(setup) else {
            return message(
                404, "no_forward_proxy",
                "there is no forward proxy; configure a listener with kind: forward",
                request)
        }
        guard page == .setup else {
            return AdminResponse(
                status: 200, contentType: "application/x-ns-proxy-autoconfig",
                fields: [Self.noStore],
                body: Array(
                    ProxyAutoConfiguration.text(proxy: guide.proxy, isSecure: guide.isSecure).utf8))
        }
        let accepted = AcceptedMediaTypes(request.accept)
        guard !accepted.prefersJSON else {
            return AdminResponse(
                status: 200, contentType: "application/json",
                fields: [Self.noStore, Self.varyAccept], body: guide.json.jsonLine)
        }
        let prefersHTML = accepted.weight(of: "text/html") > accepted.weight(of: "text/plain")
        return AdminResponse(
            status: 200,
            contentType: prefersHTML ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
            fields: [Self.noStore, Self.varyAccept] + (prefersHTML ? LivePage.protection : []),
            body: Array((prefersHTML ? guide.html : guide.text).utf8))
    }

    private func certificate(
        _ bytes: [UInt8]?, _ name: String, _ request: AdminRequest
    ) -> AdminResponse {
        guard let bytes else {
            return message(
                404, "no_authority",
                "there is no certificate authority for interception; create one with pinfold ca "
                    + "init and name it in interception.certificate", request)
        }
        return AdminResponse(
            status: 200, contentType: "application/x-x509-ca-cert",
            fields: [
                Self.noStore,
                AdminResponse.Field("Content-Disposition", "inline; filename=\"\(name)\""),
            ], body: bytes)
    }
}
