#ifndef PINFOLD_COPENSSL_H
#define PINFOLD_COPENSSL_H
#include <openssl/bio.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdint.h>

// Swift imports functions, and macros that are plain literals. Each other OpenSSL macro gets a
// function here, which adds nothing.

static inline long pinfold_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_mode(context, mode);
}

static inline int pinfold_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int pinfold_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

static inline long pinfold_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}

static inline void pinfold_SSL_CTX_set_read_ahead(SSL_CTX *context, int yes) {
    SSL_CTX_set_read_ahead(context, yes);
}

static inline int pinfold_SSL_CTX_set1_verify_cert_store(SSL_CTX *context, X509_STORE *store) {
    return (int)SSL_CTX_set1_verify_cert_store(context, store);
}

static inline int pinfold_SSL_CTX_set_tlsext_status_cb(
    SSL_CTX *context, int (*callback)(SSL *, void *)) {
    return (int)SSL_CTX_set_tlsext_status_cb(context, callback);
}

static inline long pinfold_SSL_set_tlsext_status_ocsp_resp(
    SSL *ssl, unsigned char *response, long count) {
    return SSL_set_tlsext_status_ocsp_resp(ssl, response, count);
}

static inline int pinfold_SSL_CTX_set_tlsext_status_type(SSL_CTX *context, int type) {
    return (int)SSL_CTX_set_tlsext_status_type(context, type);
}

static inline long pinfold_SSL_get_tlsext_status_ocsp_resp(
    SSL *ssl, const unsigned char **response) {
    return SSL_get_tlsext_status_ocsp_resp(ssl, response);
}

static inline int pinfold_SSL_set_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline int pinfold_SSL_set_max_send_fragment(SSL *ssl, long bytes) {
    return (int)SSL_set_max_send_fragment(ssl, bytes);
}

static inline int pinfold_SSL_set_min_proto_version(SSL *ssl, int version) {
    return (int)SSL_set_min_proto_version(ssl, version);
}

static inline int pinfold_SSL_set1_groups_list(SSL *ssl, const char *names) {
    return (int)SSL_set1_groups_list(ssl, names);
}

static inline int pinfold_SSL_set1_sigalgs_list(SSL *ssl, const char *names) {
    return (int)SSL_set1_sigalgs_list(ssl, names);
}

static inline int pinfold_SSL_set_app_data(SSL *ssl, void *data) {
    return SSL_set_app_data(ssl, data);
}

static inline void *pinfold_SSL_get_app_data(const SSL *ssl) {
    return SSL_get_app_data(ssl);
}

static inline int pinfold_SSL_session_reused(const SSL *ssl) {
    return SSL_session_reused(ssl);
}

static inline STACK_OF(X509) *pinfold_sk_X509_new(void) {
    return sk_X509_new_null();
}

static inline int pinfold_sk_X509_num(const STACK_OF(X509) *stack) {
    return sk_X509_num(stack);
}

static inline X509 *pinfold_sk_X509_value(const STACK_OF(X509) *stack, int index) {
    return sk_X509_value(stack, index);
}

static inline int pinfold_sk_X509_push(STACK_OF(X509) *stack, X509 *certificate) {
    return sk_X509_push(stack, certificate);
}

static inline void pinfold_sk_X509_free(STACK_OF(X509) *stack) {
    sk_X509_pop_free(stack, X509_free);
}

static inline STACK_OF(X509_NAME) *pinfold_sk_X509_NAME_new(void) {
    return sk_X509_NAME_new_null();
}

static inline int pinfold_sk_X509_NAME_push(STACK_OF(X509_NAME) *stack, X509_NAME *name) {
    return sk_X509_NAME_push(stack, name);
}

static inline int pinfold_sk_X509_NAME_num(const STACK_OF(X509_NAME) *stack) {
    return sk_X509_NAME_num(stack);
}

static inline X509_NAME *pinfold_sk_X509_NAME_value(
    const STACK_OF(X509_NAME) *stack, int index) {
    return sk_X509_NAME_value(stack, index);
}

static inline void pinfold_sk_X509_NAME_free(STACK_OF(X509_NAME) *stack) {
    sk_X509_NAME_pop_free(stack, X509_NAME_free);
}

static inline int pinfold_sk_GENERAL_NAME_num(const GENERAL_NAMES *names) {
    return sk_GENERAL_NAME_num(names);
}

static inline GENERAL_NAME *pinfold_sk_GENERAL_NAME_value(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

static inline GENERAL_NAMES *pinfold_sk_GENERAL_NAME_new(void) {
    return sk_GENERAL_NAME_new_null();
}

static inline int pinfold_sk_GENERAL_NAME_push(GENERAL_NAMES *names, GENERAL_NAME *name) {
    return sk_GENERAL_NAME_push(names, name);
}

static inline STACK_OF(X509_CRL) *pinfold_sk_X509_CRL_new(void) {
    return sk_X509_CRL_new_null();
}

static inline int pinfold_sk_X509_CRL_push(STACK_OF(X509_CRL) *stack, X509_CRL *list) {
    return sk_X509_CRL_push(stack, list);
}

static inline void pinfold_sk_X509_CRL_free(STACK_OF(X509_CRL) *stack) {
    sk_X509_CRL_pop_free(stack, X509_CRL_free);
}

static inline int pinfold_sk_X509_REVOKED_num(const STACK_OF(X509_REVOKED) *stack) {
    return sk_X509_REVOKED_num(stack);
}

static inline X509_REVOKED *pinfold_sk_X509_REVOKED_value(
    const STACK_OF(X509_REVOKED) *stack, int index) {
    return sk_X509_REVOKED_value(stack, index);
}

static inline int pinfold_sk_SSL_CIPHER_num(const STACK_OF(SSL_CIPHER) *stack) {
    return sk_SSL_CIPHER_num(stack);
}

static inline void pinfold_sk_SSL_CIPHER_free(STACK_OF(SSL_CIPHER) *stack) {
    sk_SSL_CIPHER_free(stack);
}

static inline EVP_PKEY *pinfold_EVP_EC_gen(const char *curve) {
    return EVP_EC_gen(curve);
}

static inline EVP_PKEY *pinfold_EVP_RSA_gen(unsigned bits) {
    return EVP_RSA_gen(bits);
}

static inline long pinfold_BIO_get_mem_data(BIO *bio, char **data) {
    return BIO_get_mem_data(bio, data);
}

static inline void pinfold_BIO_set_retry_read(BIO *bio) {
    BIO_set_retry_read(bio);
}

static inline void pinfold_BIO_set_retry_write(BIO *bio) {
    BIO_set_retry_write(bio);
}

static inline void pinfold_BIO_clear_retry_flags(BIO *bio) {
    BIO_clear_retry_flags(bio);
}

// Subjects in RFC 2253 order, with everything except printable ASCII escaped.
static inline unsigned long pinfold_name_flags(void) {
    return XN_FLAG_RFC2253;
}

static inline unsigned long pinfold_error_reason(unsigned long code) {
    return (unsigned long)ERR_GET_REASON(code);
}

static inline unsigned long pinfold_error_library(unsigned long code) {
    return (unsigned long)ERR_GET_LIB(code);
}

// Puts an error that was taken from the queue back.
static inline void pinfold_ERR_raise(unsigned long code) {
    ERR_raise(ERR_GET_LIB(code), ERR_GET_REASON(code));
}

// The SHA-256 of two pieces one after the other. SHA256() looks the algorithm up each time, which
// takes five times as long as the digest of a few bytes itself.
static inline int pinfold_SHA256(
    const void *first, size_t first_count, const void *second, size_t second_count,
    unsigned char *digest) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    SHA256_CTX context;
    int succeeds = SHA256_Init(&context) && SHA256_Update(&context, first, first_count)
        && SHA256_Update(&context, second, second_count) && SHA256_Final(digest, &context);
    OPENSSL_cleanse(&context, sizeof context);
    return succeeds;
#pragma clang diagnostic pop
}

// The state of SHA-256 after what many digests begin with.
static inline int pinfold_SHA256_begin(SHA256_CTX *state, const void *bytes, size_t count) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    return SHA256_Init(state) && SHA256_Update(state, bytes, count);
#pragma clang diagnostic pop
}

// The SHA-256 of what a state has taken and of three pieces after it. The state stays as it is.
static inline int pinfold_SHA256_end(
    const SHA256_CTX *state, const void *first, size_t first_count, const void *second,
    size_t second_count, const void *third, size_t third_count, unsigned char *digest) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    SHA256_CTX context = *state;
    int succeeds = SHA256_Update(&context, first, first_count)
        && SHA256_Update(&context, second, second_count)
        && SHA256_Update(&context, third, third_count) && SHA256_Final(digest, &context);
    OPENSSL_cleanse(&context, sizeof context);
    return succeeds;
#pragma clang diagnostic pop
}

static const uint64_t pinfold_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t pinfold_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t pinfold_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
#endif
