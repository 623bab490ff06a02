// SPDX-License-Identifier: MIT
// Requests of PHP's servers: php-fpm, php-cgi behind a web server, `php -S`.
//
// Model: a server's process has one request at a time, between the engine's php_request_startup() and
// php_request_shutdown(). The span begins before the first, which reads the body, and ends within the second, as it
// calls sapi_deactivate_module(), which sends what is left; or as fastcgi_finish_request() returns, as the client waits
// no longer. Order of calls: gp_php_request_begin() -> php_request_startup() -> gp_php_request_started() ->
// gp_php_request_end().
//
// php-fpm's facts are asked of its module's getenv(), once that has said the same as sapi_getenv(), which copies. `php
// -S` has no such function, so that words of sapi_globals are read, once they have been compared with what $_SERVER
// says; the status is there as well, and proved by a change of it. An engine that fails is told, once, and nothing is
// read of it.
//
// Threads: the engine's. Signals: not safe. Source: PHP 8.2, main/SAPI.h (sapi_globals_struct, sapi_request_info,
// sapi_headers_struct), main/SAPI.c (sapi_getenv, sapi_header_op), sapi/fpm/fpm/fpm_main.c (init_request_info,
// fastcgi_finish_request), sapi/cli/php_cli_server.c, Zend/zend_compile.h (zend_internal_function).
#pragma once

// Where nothing records, this is one test.
void gp_php_request_begin(void);

// The engine is ready for the request's script, which has not begun.
void gp_php_request_started(void);

void gp_php_request_end(void);
