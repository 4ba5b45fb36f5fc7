import COpenSSL

/// The library context in which certificates are parsed, so that their keys are decoded quickly.
///
/// For each key OpenSSL 3.0 searches all decoders, including those of private keys and of PEM: 1.2
/// million instructions to parse a certificate. This context has the whole default provider, but of
/// its decoders only those for a certificate's key: 0.4 million.
enum CertificateLibrary {
    /// `nil` is the process's own context. It is used if anything other than the default provider
    /// is active (`openssl.cnf` may load others, such as FIPS), which then decodes keys as well.
    nonisolated(unsafe) static let context: OpaquePointer? = make()

    private static func make() -> OpaquePointer? {
        // Without a decoder no key could be parsed.
        guard decoders?.pointee.algorithm_names != nil, let context = OSSL_LIB_CTX_new() else {
            return nil
        }
        // The provider lives as long as the process.
        let added = OSSL_PROVIDER_add_builtin(context, name) { _, _, functions, provider in
            functions?.pointee = CertificateLibrary.functions
            provider?.pointee = OSSL_PROVIDER_get0_provider_ctx(CertificateLibrary.defaultProvider)
            return 1
        }
        guard added == 1, OSSL_PROVIDER_load(context, name) != nil else {
            OSSL_LIB_CTX_free(context)
            ERR_clear_error()
            return nil
        }
        return context
    }

    private static let name = "pinfold-certificates"

    /// The default provider, if it is the only one.
    nonisolated(unsafe) private static let defaultProvider: OpaquePointer? = {
        guard OPENSSL_init_crypto(UInt64(OPENSSL_INIT_LOAD_CONFIG), nil) == 1,
            EVP_default_properties_is_fips_enabled(nil) == 0
        else { return nil }
        var isAlone = true
        let asked = OSSL_PROVIDER_do_all(
            nil,
            { provider, isAlone in
                let name = OSSL_PROVIDER_get0_name(provider).map { String(cString: $0) }
                if name != "default" { isAlone?.storeBytes(of: false, as: Bool.self) }
                return 1
            }, &isAlone)
        guard asked == 1, isAlone else { return nil }
        return OSSL_PROVIDER_load(nil, "default")
    }()

    /// The list ends with an entry without a name.
    nonisolated(unsafe) private static let decoders: UnsafePointer<OSSL_ALGORITHM>? = {
        var mayBeKept: Int32 = 0
        guard let defaultProvider,
            var next = OSSL_PROVIDER_query_operation(
                defaultProvider, OSSL_OP_DECODER, &mayBeKept)
        else { return nil }
        var chosen: [OSSL_ALGORITHM] = []
        while next.pointee.algorithm_names != nil {
            let properties = String(cString: next.pointee.property_definition)
            if properties.split(separator: ",").contains("structure=SubjectPublicKeyInfo") {
                chosen.append(next.pointee)
            }
            next += 1
        }
        chosen.append(OSSL_ALGORITHM())
        let list = UnsafeMutablePointer<OSSL_ALGORITHM>.allocate(capacity: chosen.count)
        list.initialize(from: chosen, count: chosen.count)
        return UnsafePointer(list)
    }()

    /// The functions of the context's provider.
    nonisolated(unsafe) private static let functions: UnsafePointer<OSSL_DISPATCH> = {
        let query:
            @convention(c) (
                UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<Int32>?
            ) -> UnsafePointer<OSSL_ALGORITHM>? = { _, operation, noStore in
                if operation == OSSL_OP_DECODER { return CertificateLibrary.decoders }
                return OSSL_PROVIDER_query_operation(
                    CertificateLibrary.defaultProvider, operation, noStore)
            }
        let list = UnsafeMutablePointer<OSSL_DISPATCH>.allocate(capacity: 2)
        list[0] = OSSL_DISPATCH(
            function_id: OSSL_FUNC_PROVIDER_QUERY_OPERATION,
            function: unsafeBitCast(query, to: (@convention(c) () -> Void).self))
        list[1] = OSSL_DISPATCH()
        return UnsafePointer(list)
    }()
}
