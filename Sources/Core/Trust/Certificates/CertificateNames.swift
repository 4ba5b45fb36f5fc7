/// The names in a certificate by which its holder may be known: every one in full, and none that
/// can be read in two ways.
package struct CertificateNames: Sendable, Hashable {
    /// An attribute of the subject (RFC 5280 §4.1.2.4).
    package struct Attribute: Sendable, Hashable {
        /// Its type, as an object identifier in decimal numbers.
        package var type: String
        /// Its value in UTF-8, without control characters.
        package var value: [UInt8]

        package init(type: String, value: [UInt8]) {
            self.type = type
            self.value = value
        }
    }

    /// The relative distinguished names of the subject in the order of RFC 4514, the last one
    /// first; one with several attributes is a set.
    package var subject: [[Attribute]] = []
    /// The alternative names (RFC 5280 §4.2.1.6) as the certificate has them: visible ASCII.
    package var dns: [[UInt8]] = []
    package var email: [[UInt8]] = []
    package var uri: [[UInt8]] = []

    package init() {}
}
