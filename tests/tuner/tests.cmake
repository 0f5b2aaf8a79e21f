hone_test(tuner winner LINK hone_tuner)
hone_test(tuner strategy LINK hone_tuner)
