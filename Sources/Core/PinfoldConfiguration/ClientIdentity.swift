/// The certificate and private key with which the gateway authenticates to servers that ask for it
/// (mutual TLS); the files are read when the configuration is loaded.
package struct ClientIdentity: Sendable, Equatable {
    /// The absolute path of the certificate, followed in the file by those that lead to its anchor.
    package var path: String
    /// Their PEM.
    package var chain: [UInt8]
    /// The absolute path of the private key; the certificate's if one file contains both.
    package var keyPath: String
    /// Its PEM.
    package var key: [UInt8]

    /// Creates an identity from the contents of two files, or of one file twice.
    package init(path: String, chain: [UInt8], keyPath: String, key: [UInt8]) {
        self.path = path
        self.chain = chain
        self.keyPath = keyPath
        self.key = key
    }
}
